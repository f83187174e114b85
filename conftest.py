"""Modules that cannot be imported for their doctests where Triton is missing (it comes with torch for CUDA)."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("triton") else ["src/pathnn/nn/kernels/*.py", "src/pathnn/nn/engines/cuda*.py"]
