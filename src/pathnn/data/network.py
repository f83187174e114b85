"""Downloads: into a temporary file, checked, then renamed."""

from __future__ import annotations

import hashlib
import logging
import urllib.error
import urllib.request
from http.client import HTTPException
from pathlib import Path

from pathnn.data.errors import DataError
from pathnn.data.files import atomic_write

log = logging.getLogger(__name__)

TIMEOUT = 30.0
"""Seconds without any answer after which a download is given up."""


class DownloadError(DataError):
    """A download that failed, or that brought another file than the one expected."""


def download(url: str, target: Path, *, sha256: str | None = None, timeout: float = TIMEOUT) -> Path:
    """Fetch `url` into `target`; a file with another checksum than `sha256` is refused.

    Without `sha256` the checksum of what came is written beside the file, so that later damage is noticed.
    """
    if not url.startswith(("https://", "http://")):
        raise ValueError(f"url={url!r}: expected an http or https address.")
    log.info("downloading %s", url)
    request = urllib.request.Request(url, headers={"User-Agent": "pathnn"})
    try:
        with urllib.request.urlopen(request, timeout=timeout) as answer, atomic_write(target) as file:
            digest = hashlib.sha256()
            while block := answer.read(1 << 16):
                digest.update(block)
                file.write(block)
            found, size = digest.hexdigest(), file.tell()
            expected_size = answer.headers.get("Content-Length")
            if expected_size is not None and size != int(expected_size):
                raise DownloadError(f"{url} broke off after {size} of {expected_size} bytes; try again.")
            if sha256 is not None and found != sha256:
                raise DownloadError(f"{url} brought a file with SHA-256 {found}; expected {sha256}.")
    except (urllib.error.URLError, HTTPException, TimeoutError, ConnectionError) as error:
        raise DownloadError(f"{url} could not be fetched: {error}.") from error
    with atomic_write(checksum_path(target)) as file:
        file.write(found.encode())
    return target


def checksum_path(path: Path) -> Path:
    """Where the checksum of a downloaded file is kept."""
    return path.with_name(path.name + ".sha256")
