"""The GPU backend: Triton kernels, and the sweeps that launch them."""
