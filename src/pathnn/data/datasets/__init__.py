"""Datasets by name: `load_dataset("zinc")` gives the task of the paper."""
