"""One GPU for many processes at once: NVIDIA's Multi-Process Service (MPS), without which their kernels take turns."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import torch

CONTROL = "nvidia-cuda-mps-control"
STANDARD = Path("/tmp/nvidia-mps/control")
"""Where the pipe of a service lies that somebody else has started for this machine."""

SECONDS = 30.0
"""How long the service may take to start, to answer and to end."""

PROBE = """
import ctypes, sys
cuda, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
sys.exit(cuda.cuInit(0) or cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
"""
"""A process that takes the GPU, and does nothing with it: one that cannot says so by its exit code."""


@contextmanager
def shared_gpu(jobs: int, device: str) -> Iterator[bool]:
    """Let the processes that are started inside compute on the GPU at the same time; tells whether they do.

    Nothing is done for one job, without a GPU, where MPS is not installed or does not work, where one is running
    already, and with `PATHNN_MPS=0` in the environment. The service is ended at the end.

    >>> with shared_gpu(4, "cpu") as shared:
    ...     shared
    False
    """
    program = shutil.which(CONTROL)
    if program is None or jobs == 1 or not _wanted(device):
        yield False
        return
    folder = tempfile.mkdtemp(prefix="pathnn-mps-")
    there = {"CUDA_MPS_PIPE_DIRECTORY": folder, "CUDA_MPS_LOG_DIRECTORY": folder}
    try:
        works = _succeeds([program, "-d"], there) and _succeeds([sys.executable, "-c", PROBE], there)
        before = dict(os.environ)
        os.environ.update(there if works else {})
        try:
            yield works
        finally:
            for name in there:
                os.environ.pop(name, None)
            os.environ.update({name: before[name] for name in there if name in before})
    finally:
        _succeeds([program], there, say="quit\n")
        shutil.rmtree(folder, ignore_errors=True)


def _wanted(device: str) -> bool:
    running = "CUDA_MPS_PIPE_DIRECTORY" in os.environ or STANDARD.exists()
    return device != "cpu" and os.environ.get("PATHNN_MPS") != "0" and not running and torch.cuda.is_available()


def _succeeds(command: list[str], there: dict[str, str], *, say: str = "") -> bool:
    with suppress(OSError, subprocess.TimeoutExpired):
        done = subprocess.run(
            command,
            input=say,
            text=True,
            env={**os.environ, **there},
            timeout=SECONDS,
            capture_output=True,
            check=False,
        )
        return done.returncode == 0
    return False
