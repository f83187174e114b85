"""One GPU for many processes at once: NVIDIA's Multi-Process Service (MPS), without which their kernels take turns."""

from __future__ import annotations

import os
import shutil
import signal
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

PID = "nvidia-cuda-mps-control.pid"
"""The file in the folder of a service that holds the number of its process."""

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
    folder = Path(tempfile.mkdtemp(prefix="pathnn-mps-"))
    there = {"CUDA_MPS_PIPE_DIRECTORY": str(folder), "CUDA_MPS_LOG_DIRECTORY": str(folder)}
    try:
        works = _succeeds([program, "-d"], there) and _succeeds([sys.executable, "-c", PROBE], there)
        with _environment(there if works else {}):
            yield works
    finally:
        _end(program, folder, there)


def _wanted(device: str) -> bool:
    running = "CUDA_MPS_PIPE_DIRECTORY" in os.environ or STANDARD.exists()
    return device != "cpu" and os.environ.get("PATHNN_MPS") != "0" and not running and torch.cuda.is_available()


@contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    """Variables for the processes that are started inside; as before afterwards."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _succeeds(command: list[str], there: dict[str, str], *, say: str = "") -> bool:
    """Whether a program ends well and in time. Its output is not read: a service that goes on holds that open."""
    with suppress(OSError, subprocess.TimeoutExpired):
        done = subprocess.run(
            command,
            input=say.encode(),
            env={**os.environ, **there},
            timeout=SECONDS,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
        )
        return done.returncode == 0
    return False


def _end(program: str, folder: Path, there: dict[str, str]) -> None:
    """End the service: by its own command, or else, also on Ctrl-C meanwhile, by the number of its process."""
    ended = False
    try:
        ended = _succeeds([program], there, say="quit\n")
    finally:
        if not ended:
            with suppress(OSError, ValueError):  # without the file it has never started
                os.kill(int((folder / PID).read_text()), signal.SIGKILL)
        shutil.rmtree(folder, ignore_errors=True)
