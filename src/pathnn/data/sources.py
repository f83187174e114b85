"""Find the files of datasets in the cache, in the mirror or on the network."""

from __future__ import annotations

import hashlib
import logging
import os
import urllib.error
import urllib.request
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path

from pathnn.data.errors import DataError, DatasetNotFoundError
from pathnn.files import atomic_write, cache_dir, mirror_dir, replace_file, sha256

log = logging.getLogger(__name__)


class DownloadError(DataError):
    """A download failed, or the file is not the expected one."""


def download(url: str, target: Path, *, sha256: str | None = None, timeout: float = 30.0) -> Path:
    """Download `url` to `target`, check `sha256`, and write it beside the file, so that later damage is noticed.

    It fails after `timeout` seconds without an answer.
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
    replace_file(checksum_path(target), found)
    return target


def checksum_path(path: Path) -> Path:
    """Return where the checksum of a downloaded file is stored."""
    return path.with_name(path.name + ".sha256")


@dataclass(frozen=True)
class DataFile:
    """One file of a dataset; the checksums are those of a copy that was tested and of the file at the public `url`.

    Originals exist in several packings, so a copy with another checksum is read, unless it must be `exact`.
    """

    name: str
    sha256: str | None = None
    url: str | None = None
    url_sha256: str | None = None
    exact: bool = False


def find_file(*files: DataFile) -> Path | None:
    """Return the first of `files` in the cache or in the mirror, or None; download nothing."""
    places = ((file, path) for file in files for path in _candidates(file))
    return next((path for file, path in places if path.is_file() and _sound(file, path)), None)


def get_file(*files: DataFile) -> Path:
    """Return the first of `files` (forms of the same data) on this machine, else download the first possible."""
    path = find_file(*files)
    if path is not None:
        return path
    failures = []
    for file in files:
        if file.url is None:
            failures.append(f"no public address of {file.name} is known")
        elif offline():
            failures.append("the network is not used (PATHNN_OFFLINE is set)")
        else:
            try:
                return download(file.url, _download_path(file), sha256=file.url_sha256)
            except DownloadError as error:
                failures.append(str(error).rstrip("."))
    raise DatasetNotFoundError(_not_found(files, failures))


def verify_file(file: DataFile) -> bool | None:
    """Return whether the local copy has the known checksum; None without a copy or a known checksum."""
    path = next((path for path in _candidates(file) if path.is_file()), None)
    if path is None:
        return None
    known = {file.sha256, file.url_sha256, recorded_checksum(path)} - {None}
    return sha256(path) in known if known else None


def recorded_checksum(path: Path) -> str | None:
    """Read the checksum of a file from the one beside it, which `download` or sha256sum wrote; None without one."""
    beside = checksum_path(path)
    return next(iter(beside.read_text().split()), "").lstrip("\\").lower() if beside.is_file() else None


def offline() -> bool:
    """Return whether `PATHNN_OFFLINE` forbids the network: it is set to anything but 0."""
    return os.environ.get("PATHNN_OFFLINE", "0") not in ("", "0")


def _download_path(file: DataFile) -> Path:
    return cache_dir() / "files" / file.name


def _candidates(file: DataFile) -> list[Path]:
    """Return the possible places, in order; a mirror may have the file up to three folders below."""
    mirror = mirror_dir()
    patterns = [] if mirror is None else [mirror.glob("*/" * depth + file.name) for depth in range(4)]
    return [_download_path(file), *(path for paths in patterns for path in sorted(paths))]


def _sound(file: DataFile, path: Path) -> bool:
    """Return whether the copy may be read; raise `DataError` for a damaged file of the mirror."""
    recorded = recorded_checksum(path)
    expected = file.sha256 if recorded is None and file.exact else recorded
    if expected is None or sha256(path) == expected:
        return True
    if path == _download_path(file):
        log.warning("%s is damaged and is ignored: its checksum is not %s", path, expected)
        return False
    raise DataError(f"{path} is damaged: its SHA-256 is not {expected}. Put a whole copy in its place.")


def _not_found(files: tuple[DataFile, ...], failures: list[str]) -> str:
    names = " or ".join(file.name for file in files)
    mirror = mirror_dir()
    looked = f"the cache {cache_dir() / 'files'}"
    looked += f" and the mirror {mirror} and its subfolders" if mirror else " (PATHNN_MIRROR is not set)"
    urls = [file.url for file in files if file.url]
    network = f"or let the network be used to fetch {urls[0]}" if urls else "the network has no public copy of it"
    return (
        f"{names} was not found in {looked}; {'; '.join(failures)}. "
        f"Put the file into a folder and set PATHNN_MIRROR to that folder; {network}."
    )
