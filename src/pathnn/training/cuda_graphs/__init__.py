"""Training steps and predictions as CUDA graphs over padded batches."""
