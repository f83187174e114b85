"""Where files come from: cache, then mirror, then network; checksums; errors that say what to do."""

from __future__ import annotations

import hashlib
import http.server
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pathnn.data.errors import DataError, DatasetNotFoundError
from pathnn.data.sources import (
    DataFile,
    DownloadError,
    download,
    find_file,
    get_file,
    offline,
    recorded_checksum,
    verify_file,
)

CONTENT = b"a dataset" * 1000
DIGEST = hashlib.sha256(CONTENT).hexdigest()


class Handler(http.server.BaseHTTPRequestHandler):
    """Serves one file, the same cut off, and nothing else."""

    requests: list[str]

    def do_GET(self) -> None:
        self.requests.append(self.path)
        if self.path == "/missing":
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(CONTENT)))
        self.end_headers()
        self.wfile.write(CONTENT if self.path == "/data.bin" else CONTENT[:100])

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, own_cache: Path) -> Iterator[tuple[str, list[str]]]:
    monkeypatch.setenv("PATHNN_OFFLINE", "0")
    seen: list[str] = []
    handler = type("OneHandler", (Handler,), {"requests": seen})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as httpd:
        thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{httpd.server_port}", seen
        httpd.shutdown()
        thread.join()


def test_a_download_is_kept_and_not_repeated(server: tuple[str, list[str]], own_cache: Path) -> None:
    url, seen = server
    file = DataFile("data.bin", url=f"{url}/data.bin", url_sha256=DIGEST)
    assert get_file(file).read_bytes() == CONTENT
    assert get_file(file) == own_cache / "files" / "data.bin"
    assert seen == ["/data.bin"]
    assert verify_file(file) is True


def test_a_damaged_download_is_fetched_again(server: tuple[str, list[str]], own_cache: Path) -> None:
    url, seen = server
    file = DataFile("data.bin", url=f"{url}/data.bin")
    path = get_file(file)
    path.write_bytes(CONTENT[:-1])
    assert verify_file(file) is False
    assert get_file(file).read_bytes() == CONTENT
    assert len(seen) == 2


@pytest.mark.parametrize("address", ["/cut", "/missing"])
def test_a_broken_download_leaves_nothing(server: tuple[str, list[str]], own_cache: Path, address: str) -> None:
    url, _ = server
    target = own_cache / "files" / "data.bin"
    with pytest.raises(DownloadError):
        download(f"{url}{address}", target)
    assert not target.exists()
    assert not list(own_cache.rglob("*.tmp"))


def test_a_download_with_another_checksum_is_refused(server: tuple[str, list[str]], own_cache: Path) -> None:
    url, _ = server
    with pytest.raises(DownloadError, match="expected " + "0" * 64):
        download(f"{url}/data.bin", own_cache / "data.bin", sha256="0" * 64)
    assert not (own_cache / "data.bin").exists()


def test_only_http_is_fetched(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="http"):
        download("file:///etc/hostname", tmp_path / "a")


def test_the_mirror_comes_before_the_network(
    server: tuple[str, list[str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    url, seen = server
    (tmp_path / "mirror" / "sub").mkdir(parents=True)
    (tmp_path / "mirror" / "sub" / "data.bin").write_bytes(CONTENT)
    monkeypatch.setenv("PATHNN_MIRROR", str(tmp_path / "mirror"))
    assert get_file(DataFile("data.bin", url=f"{url}/data.bin")) == tmp_path / "mirror" / "sub" / "data.bin"
    assert seen == []


def test_the_cache_comes_before_the_mirror(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, own_cache: Path) -> None:
    for folder in (tmp_path / "mirror", own_cache / "files"):
        folder.mkdir(parents=True)
        (folder / "data.bin").write_bytes(CONTENT)
    monkeypatch.setenv("PATHNN_MIRROR", str(tmp_path / "mirror"))
    assert find_file(DataFile("data.bin")) == own_cache / "files" / "data.bin"


def test_a_missing_file_says_where_it_was_looked_for_and_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, own_cache: Path
) -> None:
    monkeypatch.setenv("PATHNN_MIRROR", str(tmp_path / "mirror"))
    with pytest.raises(DatasetNotFoundError) as info:
        get_file(DataFile("data.bin", url="https://example.org/data.bin"))
    message = str(info.value)
    for part in (
        "data.bin",
        str(own_cache),
        str(tmp_path / "mirror"),
        "PATHNN_MIRROR",
        "https://example.org/data.bin",
    ):
        assert part in message
    assert isinstance(info.value, ValueError)


def test_a_file_that_no_network_has_says_so(own_cache: Path) -> None:
    with pytest.raises(DatasetNotFoundError, match="no public address"):
        get_file(DataFile("data.bin"))


def test_a_damaged_copy_of_an_exact_file_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "data.bin").write_bytes(CONTENT[1:])
    monkeypatch.setenv("PATHNN_MIRROR", str(tmp_path))
    with pytest.raises(DataError, match="damaged"):
        find_file(DataFile("data.bin", sha256=DIGEST, exact=True))
    assert find_file(DataFile("data.bin", sha256=DIGEST)) == tmp_path / "data.bin"
    assert verify_file(DataFile("data.bin", sha256=DIGEST)) is False
    assert verify_file(DataFile("data.bin")) is None


def test_a_checksum_as_sha256sum_writes_it(tmp_path: Path) -> None:
    path, beside = tmp_path / "a.txt", tmp_path / "a.txt.sha256"
    assert recorded_checksum(path) is None
    beside.write_text("ABCDEF0123  a.txt\n")
    assert recorded_checksum(path) == "abcdef0123"
    beside.write_text("")
    assert recorded_checksum(path) == ""


@pytest.mark.parametrize(("value", "expected"), [("1", True), ("yes", True), ("0", False), ("", False)])
def test_the_network_is_left_alone_where_that_is_asked(
    monkeypatch: pytest.MonkeyPatch, value: str, expected: bool
) -> None:
    monkeypatch.setenv("PATHNN_OFFLINE", value)
    assert offline() is expected


def test_a_copy_of_the_original_is_known_by_its_checksum(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "data.bin").write_bytes(CONTENT)
    monkeypatch.setenv("PATHNN_MIRROR", str(tmp_path))
    assert verify_file(DataFile("data.bin", url_sha256=DIGEST)) is True
    assert verify_file(DataFile("data.bin", url_sha256="0" * 64)) is False


def test_a_server_that_says_nothing_is_given_up(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/data.bin"
        begin = time.monotonic()
        with pytest.raises(DownloadError, match="could not be fetched"):
            download(url, tmp_path / "data.bin", timeout=0.2)
    assert time.monotonic() - begin < 10
