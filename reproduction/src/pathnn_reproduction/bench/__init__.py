"""Benchmarks: ours against what a user would do otherwise, as ratios within one run."""
