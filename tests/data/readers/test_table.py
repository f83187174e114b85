"""Tables of every format are read in chunks, whatever their compression, and bad files give one clear error."""

from __future__ import annotations

import bz2
import csv
import datetime
import gzip
import io
import lzma
import sys
import tracemalloc
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, settings, strategies as st

from pathnn.data import load_data
from pathnn.data.errors import DataError
from pathnn.data.readers.table import Table, find_separator, open_table, read_table

Chem = pytest.importorskip("rdkit.Chem", reason="molecules need rdkit (extra mol)")

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


def test_a_file_of_windows_says_how_to_save_it(tmp_path: Path) -> None:
    (tmp_path / "my.csv").write_bytes("smiles;Löslichkeit\nC;1\n".encode("cp1252"))
    with pytest.raises(DataError, match=r"is not UTF-8 text.*In Excel, save it as CSV UTF-8"):
        read_table(tmp_path / "my.csv")


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


CELLS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)


@given(
    rows=st.lists(st.tuples(CELLS, CELLS, CELLS), min_size=1, max_size=8),
    separator=st.sampled_from([",", ";", "\t", "|"]),
)
@settings(max_examples=60, deadline=None)
def test_what_csv_writes_is_read_with_any_separator(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str, str]], separator: str
) -> None:
    text = io.StringIO()
    writer = csv.writer(text, delimiter=separator, quoting=csv.QUOTE_ALL)
    writer.writerows([("smiles", "log S", "note"), *rows])
    table = read_table(file(tmp_path_factory.mktemp("t"), text.getvalue()))
    assert table.columns == ("smiles", "log S", "note")
    assert table.rows == tuple(rows)


@pytest.mark.parametrize(
    ("text", "columns", "first"),
    [
        ("smiles;log S, 25 C\nCCO;-0,5\n", ("smiles", "log S, 25 C"), ("CCO", "-0,5")),
        ("a,b;c\n1,2;3\n", ("a", "b;c"), ("1", "2;3")),
        ("sep=;\na;b,c,d\n1;2\n", ("a", "b,c,d"), ("1", "2")),
        ("SEP=|\r\na|b\r\n1|2\r\n", ("a", "b"), ("1", "2")),
        ("smiles\nC\n", ("smiles",), ("C",)),
        ("id\tsmiles\n1\tC, then N\n", ("id", "smiles"), ("1", "C, then N")),
        ('"a;b",c\n1,2\n', ("a;b", "c"), ("1", "2")),
    ],
)
def test_the_separator_is_found(tmp_path: Path, text: str, columns: tuple[str, ...], first: tuple[str, ...]) -> None:
    table = read_table(file(tmp_path, text))
    assert (table.columns, table.rows[0]) == (columns, first)


def test_a_tsv_is_separated_by_tabs_only(tmp_path: Path) -> None:
    table = read_table(file(tmp_path, "a,b;c\td\n1,2;3;4\t5\n", "my.tsv"))
    assert (table.columns, table.rows) == (("a,b;c", "d"), (("1,2;3;4", "5"),))


@pytest.mark.parametrize(
    ("value", "found"), [("1,5", True), ("-3", True), ("1,5 mg", False), ("1.5", True), ("", True)]
)
def test_decimal_commas_are_named_and_not_guessed(value: str, found: bool) -> None:
    table = Table("my.csv", ("y",), (("0,25",), (value,)))
    if not found:
        table.check_decimal_commas(["y"])
        return
    with pytest.raises(DataError, match=r"the column 'y' has decimal commas \(0,25\): expected points \(0.25\)"):
        table.check_decimal_commas(["y"])


def test_numbers_without_commas_are_fine() -> None:
    Table("my.csv", ("y", "z"), (("0.25", ""), ("1", "a,b"))).check_decimal_commas(["y", "z"])


@pytest.mark.parametrize(
    ("text", "columns", "rows"),
    [
        ("CCO ethanol\nC\nCC a b  c\n\n", ("smiles", "name"), (("CCO", "ethanol"), ("C", ""), ("CC", "a b  c"))),
        ("SMILES name\nCCO ethanol\n", ("SMILES", "name"), (("CCO", "ethanol"),)),
        ("#SMILES\tname\ty\nCCO\tgrain alcohol\t2\n", ("SMILES", "name", "y"), (("CCO", "grain alcohol", "2"),)),
        ("C1CC bad\nC good\n", ("smiles", "name"), (("C1CC", "bad"), ("C", "good"))),
    ],
)
def test_smi_files(tmp_path: Path, text: str, columns: tuple[str, ...], rows: tuple[tuple[str, ...], ...]) -> None:
    table = read_table(file(tmp_path, text, "my.smi"))
    assert (table.columns, table.rows) == (columns, rows)


def sdf(*records: tuple[str, dict[str, str]]) -> str:
    """Write SMILES and properties with rdkit."""
    text = io.StringIO()
    writer = Chem.SDWriter(text)
    for smiles, properties in records:
        molecule = Chem.MolFromSmiles(smiles)
        for name, value in properties.items():
            molecule.SetProp(name, value)
        writer.write(molecule)
    writer.close()
    return text.getvalue()


BROKEN = "broken\n\n\n 99 99 oops\nM  END\n> <logS>\n7\n\n$$$$\n"


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_an_sdf_has_smiles_names_and_properties(tmp_path: Path, suffix: str, end: str) -> None:
    one = sdf(("OCC", {"_Name": "ethanol", "logS": "1.5"}), ("C[C@H](N)C(=O)O", {"id": "two\nlines"}))
    text = (one + "$$$$\n" + BROKEN + sdf(("[Na+].[Cl-]", {"logS": "2"}))).replace("\n", end)
    table = read_table(file(tmp_path, PACK[suffix](text.encode()), f"my.sdf{suffix}"))
    assert table.columns == ("smiles", "name", "logS", "id")
    assert table.rows == (
        ("CCO", "ethanol", "1.5", ""),
        ("C[C@H](N)C(=O)O", "", "", "two\nlines"),
        ("", "broken", "7", ""),
        ("[Cl-].[Na+]", "", "2", ""),
    )
    assert table.problems == {2: "'broken' is no molecule: its atoms and bonds cannot be read"}


def test_an_sdf_without_properties_says_so(tmp_path: Path) -> None:
    path = file(tmp_path, sdf(("C", {"_Name": "methane"})), "my.sdf")
    with pytest.raises(DataError, match=r"has no column 'logS'; expected one of .*\(the file has no properties\)"):
        load_data(path, targets="logS")
    assert load_data(path).notes == "no targets chosen of the columns ['name'] (the file has no properties)"


def test_problems_are_counted_in_their_chunk(tmp_path: Path) -> None:
    with open_table(file(tmp_path, sdf(("C", {}), ("CC", {})) + BROKEN, "my.sdf")) as table:
        assert [dict(chunk.problems) for chunk in table.chunks(2)] == [
            {},
            {0: "'broken' is no molecule: its atoms and bonds cannot be read"},
        ]


def test_a_property_called_smiles_does_not_replace_the_molecule(tmp_path: Path) -> None:
    table = read_table(file(tmp_path, sdf(("CCO", {"smiles": "old", "name": "ethanol"})), "my.sdf"))
    assert (table.columns, table.rows) == (("smiles", "name"), (("CCO", "ethanol"),))


def test_a_parquet_file_is_text_with_empty_nulls(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="Parquet files need pyarrow (extra chem)")
    from pyarrow import parquet

    day = datetime.date(2024, 5, 31)
    columns = {"smiles": ["C", "CC"], "y": [0.1, None], "n": [1, 2], "on": [True, False], "day": [day, day]}
    parquet.write_table(pyarrow.table(columns), tmp_path / "my.parquet")
    table = read_table(tmp_path / "my.parquet")
    assert table.columns == tuple(columns)
    assert table.rows == (("C", "0.1", "1", "1", "2024-05-31"), ("CC", "", "2", "0", "2024-05-31"))
    (tmp_path / "cut.parquet").write_bytes((tmp_path / "my.parquet").read_bytes()[:100])
    with pytest.raises(DataError, match=r"cut.parquet is damaged or is not a Parquet file"):
        read_table(tmp_path / "cut.parquet")


def test_without_pyarrow_parquet_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(DataError, match=r"pip install 'pathnn\[chem\]'"):
        read_table(file(tmp_path, "PAR1", "my.parquet"))


@pytest.mark.parametrize(
    ("columns", "rows", "found"),
    [
        (("id", "Canonical_SMILES", "x"), (("1", "?", "CCO"),), "Canonical_SMILES"),
        (("id", "code", "y"), (("a1", "CCO", "1"), ("b2", "CCN", "2")), "code"),
        (("id", "code"), tuple((str(i), "CCO" if i else "bad") for i in range(10)), "code"),
        (("id", "code"), (("1", "CCO"), ("2", ""), ("3",)), "code"),
    ],
)
def test_the_smiles_column_is_found(columns: tuple[str, ...], rows: tuple[tuple[str, ...], ...], found: str) -> None:
    assert Table("my.csv", columns, rows).smiles_column() == found


@pytest.mark.parametrize(
    ("columns", "rows", "message"),
    [
        (
            ("a", "b", "y"),
            (("CCO", "CCN", "1"),),
            r"several columns that may hold SMILES, \['a', 'b'\]: .*--smiles COLUMN",
        ),
        (("id", "y"), (("x1", "1"), ("CCO", "2")), "no SMILES column: expected one called smiles"),
        (("a", "a"), (("CCO", "x"),), "several columns that may hold SMILES|no SMILES column"),
        (("", "y"), (("CCO", "1"),), "no SMILES column"),
    ],
)
def test_a_smiles_column_that_is_not_clear_is_asked_for(
    columns: tuple[str, ...], rows: tuple[tuple[str, ...], ...], message: str
) -> None:
    with pytest.raises(DataError, match=message):
        Table("my.csv", columns, rows).smiles_column()


def test_the_separator_is_found_from_the_first_lines() -> None:
    assert find_separator(["smiles;log S, 25 C\n", "CCO;-0,5\n"]) == ";"
    assert find_separator(["smiles\n", "C\n"]) == ","
