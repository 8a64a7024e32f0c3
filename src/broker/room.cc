// broker
