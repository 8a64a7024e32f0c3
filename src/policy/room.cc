// policy
