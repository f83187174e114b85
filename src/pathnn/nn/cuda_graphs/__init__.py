"""CUDA graphs: replay all kernels of a call, a training step or a prediction in one launch."""
