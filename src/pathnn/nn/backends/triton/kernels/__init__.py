"""Triton kernels of the CUDA engine. Nothing here is imported unless there is a GPU: Triton need not be installed."""
