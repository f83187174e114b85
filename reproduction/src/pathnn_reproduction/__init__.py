"""Reproduce the paper: its runs, tables, figures and benchmarks, as plug-ins of the command line."""
