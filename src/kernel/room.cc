// kernel
