"""Tables are read in chunks, whatever their compression, and bad files give one clear error."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tracemalloc
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pathnn.data.errors import DataError
from pathnn.data.readers.table import Table, open_table, read_table

GOOD = "smiles,logS\nCCO,-0.5\nc1ccccc1,1.25\nC,0.0\n"
ROWS = (("CCO", "-0.5"), ("c1ccccc1", "1.25"), ("C", "0.0"))
PACK = {"": lambda data: data, ".gz": gzip.compress, ".xz": lzma.compress, ".bz2": bz2.compress}


def file(folder: Path, text: str | bytes, name: str = "my.csv") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


@pytest.mark.parametrize("suffix", list(PACK))
@pytest.mark.parametrize("start", ["", "\ufeff"])
def test_compressed_tables_are_equal(tmp_path: Path, suffix: str, start: str) -> None:
    path = file(tmp_path, PACK[suffix]((start + GOOD).encode()), f"my.csv{suffix}")
    assert read_table(path) == Table(str(path), ("smiles", "logS"), ROWS)


@pytest.mark.parametrize("suffix", list(PACK)[1:])
def test_damaged_tables_are_errors(tmp_path: Path, suffix: str) -> None:
    for content in (b"not compressed", PACK[suffix](GOOD.encode())[:-6], PACK[suffix](b"smiles\n\xff\xfe\n")):
        with pytest.raises(DataError, match="is damaged or is not UTF-8 text"):
            read_table(file(tmp_path, content, f"my.csv{suffix}"))


def test_standard_input_is_read_and_left_open(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.BytesIO(GOOD.encode())
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=stream))
    assert read_table("-") == Table("standard input", ("smiles", "logS"), ROWS)
    assert not stream.closed


@given(count=st.integers(1, 50), size=st.integers(1, 60))
@settings(max_examples=30, deadline=None)
def test_chunks_are_the_rows_in_order(tmp_path_factory: pytest.TempPathFactory, count: int, size: int) -> None:
    rows = tuple((str(i), f"x{i}") for i in range(count))
    path = file(tmp_path_factory.mktemp("t"), "a,b\n" + "".join(f"{a},{b}\n" for a, b in rows))
    with open_table(path) as table:
        chunks = list(table.chunks(size))
    assert sum((chunk.rows for chunk in chunks), ()) == rows
    assert all(len(chunk.rows) == size for chunk in chunks[:-1])


def test_memory_does_not_grow_with_the_table(tmp_path: Path) -> None:
    def peak(rows: int) -> int:
        path = file(tmp_path, "smiles,name\n" + "CCO,a molecule\n" * rows)
        tracemalloc.start()
        with open_table(path) as table:
            assert sum(len(chunk.rows) for chunk in table.chunks(100)) == rows
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    assert peak(50_000) < 1.5 * peak(5_000)


@pytest.mark.parametrize("text", ["", "smiles\n", "\n\n", "sep=,\nsmiles,y\n"])
def test_a_table_without_rows_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(DataError, match="has no rows"):
        read_table(file(tmp_path, text))


def test_a_row_too_long_is_found_in_a_later_chunk(tmp_path: Path) -> None:
    with open_table(file(tmp_path, "a,b\n1,2\n1,2\n1,2,3\n")) as table:
        chunks = table.chunks(2)
        assert len(next(chunks).rows) == 2
        with pytest.raises(DataError, match="row 3: 3 values, but the header has 2"):
            next(chunks)
