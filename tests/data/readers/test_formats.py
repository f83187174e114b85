"""File formats: graph6 against networkx, TU folders, EXP, LRGB's tensors, OGB's tables."""

from __future__ import annotations

import gzip
import io
import zipfile
from pathlib import Path

import networkx as nx
import pytest
import torch
from hypothesis import given, settings, strategies as st

from pathnn.data.datasets.molecules import read_lrgb, read_ogb_csv
from pathnn.data.datasets.synthetic import consecutive_splits, parse_exp
from pathnn.data.errors import BadRowsError, DataError
from pathnn.data.readers.graph6 import parse_graph6, read_graph6
from pathnn.data.readers.tu import read_tu


@given(sizes=st.lists(st.integers(0, 70), min_size=1, max_size=6), seed=st.integers(0, 10**6))
@settings(max_examples=40, deadline=None)
def test_graph6_reads_what_networkx_writes(sizes: list[int], seed: int) -> None:
    graphs = [nx.gnp_random_graph(n, 0.3, seed=seed + i) for i, n in enumerate(sizes)]
    lines = [nx.to_graph6_bytes(graph, header=False).decode().strip() for graph in graphs]
    packed, bad = parse_graph6(lines)
    assert not bad
    for graph, data in zip(graphs, packed, strict=True):
        expected = sorted((u, v) for pair in graph.edges for u, v in (pair, pair[::-1]))
        assert data.num_nodes == len(graph)
        assert [tuple(edge) for edge in data.edge_index.t().tolist()] == expected


def test_graph6_of_a_thousand_vertices() -> None:
    graph = nx.cycle_graph(1000)
    packed, _ = parse_graph6([">>graph6<<" + nx.to_graph6_bytes(graph, header=False).decode()])
    assert packed.num_nodes == 1000
    assert packed.num_edges == 2000


def test_bad_graph6_lines_are_counted_and_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.g6"
    path.write_text("Bw\n\nBww\nB w\nA_\n")
    with pytest.raises(BadRowsError, match="2 of 4 rows") as info:
        read_graph6(path)
    assert [row.row for row in info.value.rows] == [2, 3], "empty lines are no rows, as in a CSV"
    graphs, bad = read_graph6(path, skip_invalid=True)
    assert len(graphs) == 2
    assert len(bad) == 2
    assert graphs.names == ("Bw", "A_")


@pytest.mark.parametrize("suffix", [".gz", ".xz"])
def test_damaged_compressed_files_are_errors(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a.g6{suffix}"
    path.write_bytes(b"not compressed")
    with pytest.raises(DataError, match="damaged"):
        read_graph6(path)


TU = {
    "A": "1, 2\n2, 1\n2, 3\n1, 2\n2, 1\n4, 5\n4, 4\n",
    "graph_indicator": "1\n1\n1\n2\n2\n",
    "graph_labels": "-1\n1\n",
    "node_labels": "5\n7\n5\n9\n5\n",
    "edge_labels": "0\n0\n3\n0\n0\n3\n3\n",
}


def write_tu(folder: Path, **changes: str | None) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for part, text in (TU | changes).items():
        if text is not None:
            (folder / f"X_{part}.txt").write_text(text)
    return folder


def test_a_tu_folder_is_read(tmp_path: Path) -> None:
    data = read_tu(write_tu(tmp_path / "X"), attributes=False)
    graphs = data.graphs
    assert data.classes == ("-1", "1")
    assert graphs.y.tolist() == [0, 1]
    assert graphs[0].edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]], "doubled once, reverse added"
    assert graphs[1].edge_index.tolist() == [[0, 1], [1, 0]], "no loop"
    assert graphs[0].edge_attr.view(-1).tolist() == [0, 0, 1, 1]
    assert graphs[0].x.tolist() == [[1, 0, 0], [0, 1, 0], [1, 0, 0]]
    (tmp_path / "X" / "X_node_labels.txt").unlink()
    _, graphs, _, values = read_tu(tmp_path / "X", attributes=False)
    assert [values["degrees"][0][code] for code in graphs.x.int().argmax(dim=1)] == [1, 2, 1, 1, 1]


def test_a_tu_zip_may_have_doubled_separators(tmp_path: Path) -> None:
    path = tmp_path / "X.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for part, text in TU.items():
            archive.writestr(f"X//X_{part}.txt", text)
        archive.writestr("X//README.txt", "of no interest")
    assert torch.equal(read_tu(path).graphs.edge_index, read_tu(write_tu(tmp_path / "X")).graphs.edge_index)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"A": "1, 4\n"}, "row 1: 1, 4 are not two vertices of the same graph"),
        ({"A": "1, 9\n"}, "same graph"),
        ({"A": "1, b\n"}, "numbers separated by commas"),
        ({"A": None}, "NAME_A.txt"),
        ({"graph_indicator": None}, "graph_indicator.txt is missing"),
        ({"graph_indicator": "1\n2\n1\n2\n2\n"}, "never decrease"),
        ({"node_labels": "5\n"}, "has 1 rows; expected 5"),
        ({"graph_labels": "1\n"}, "has 1 rows; expected 2"),
        ({"node_attributes": "1\n2\nnan\n4\n5\n"}, "row 3 is not finite"),
    ],
)
def test_a_wrong_tu_folder_says_what_is_wrong(tmp_path: Path, changes: dict[str, str | None], message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_tu(write_tu(tmp_path / "X", **changes))


def test_a_damaged_zip_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "X.zip"
    path.write_bytes(b"PK\x03\x04 no zip")
    for read in (read_tu, read_ogb_csv, lambda p: read_lrgb(p, 11)):
        with pytest.raises(DataError, match=r"X\.zip"):
            read(path)


def test_exp_files_are_read() -> None:
    graphs = parse_exp("2\n3 1\n0 1 1\n1 2 0 2\n0 1 1\n1 0\n0 0\n")
    assert graphs[0].edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert graphs[0].x.tolist() == [[1.0]] * 3
    assert graphs.y.tolist() == [1, 0]


@pytest.mark.parametrize("text", ["", "2\n1 0\n0 0\n", "1\n2 1\n0 2 1\n0 1 0\n", "one\n", "1\n1\n0 0\n"])
def test_exp_files_that_are_cut_off_or_wrong_are_errors(text: str) -> None:
    with pytest.raises(DataError, match="EXP file"):
        parse_exp(text)


def test_the_four_splits_of_exp() -> None:
    splits = consecutive_splits(1200)
    assert [(s.train.numel(), s.val.numel(), s.test.numel()) for s in splits] == [(900, 120, 180)] * 4
    assert splits[0].val.tolist() == list(range(120))
    assert splits[0].test.tolist() == list(range(120, 300))
    assert splits[3].val.tolist() == list(range(360, 480))
    # Without 360..479 the rest is 0..359, 480..1199; its fourth block, positions 540..719, is 660..839.
    assert splits[3].test.tolist() == list(range(660, 840))
    # In split 1 the block of 180 lies behind the validation block: positions 180..359 are 300..479.
    assert splits[1].test.tolist() == list(range(300, 480))
    for split in splits:
        assert sorted(torch.cat([split.train, split.val, split.test]).tolist()) == list(range(1200))


def lrgb_zip(path: Path, content: dict[str, object]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for part, graphs in content.items():
            buffer = io.BytesIO()
            torch.save(graphs, buffer)
            archive.writestr(f"peptidesstruct/{part}.pt", buffer.getvalue())
    return path


def lrgb_graph(n: int) -> tuple[torch.Tensor, ...]:
    edge_index = torch.tensor([[0, 1], [1, 0]])
    return torch.full((n, 9), n), torch.ones(2, 3, dtype=torch.long), edge_index, torch.rand(1, 11)


def test_the_published_form_of_peptides_struct_is_read(tmp_path: Path) -> None:
    parts = {"train": [lrgb_graph(2), lrgb_graph(3)], "val": [lrgb_graph(4)], "test": [lrgb_graph(5)]}
    built = read_lrgb(lrgb_zip(tmp_path / "peptidesstruct.zip", parts), 11)
    assert [data.num_nodes for data in built.graphs] == [2, 3, 4, 5]
    assert built.splits[0].val.tolist() == [2]
    assert torch.equal(built.graphs.y[1], parts["train"][1][3][0])
    assert built.graphs[3].x.tolist() == [[5] * 9] * 5


class Unsafe:
    """Something that only a full unpickling would load."""


@pytest.mark.parametrize(
    "content",
    [
        {"train": [Unsafe()], "val": [], "test": []},
        {"train": [lrgb_graph(2)], "val": []},
        {"train": [lrgb_graph(2)[:3]], "val": [], "test": []},
        {"train": {"a": 1}, "val": [], "test": []},
        {"train": [(*lrgb_graph(2)[:3], torch.rand(1, 10))], "val": [], "test": []},
    ],
)
def test_other_contents_are_refused_and_nothing_is_unpickled(tmp_path: Path, content: dict[str, object]) -> None:
    with pytest.raises(DataError):
        read_lrgb(lrgb_zip(tmp_path / "peptidesstruct.zip", content), 11)


def test_ogbs_tables_are_read(tmp_path: Path) -> None:
    tables = {
        "raw/edge": "0,1\n1,2\n0,1\n",
        "raw/num-node-list": "3\n2\n",
        "raw/num-edge-list": "2\n1\n",
        "raw/node-feat": "\n".join(",".join([str(i)] * 9) for i in range(5)),
        "raw/edge-feat": "0,0,1\n3,0,0\n1,1,1\n",
        "raw/graph-label": "0\n1\n",
        "split/scaffold/train": "1\n",
        "split/scaffold/valid": "0\n",
        "split/scaffold/test": "",
    }
    path = tmp_path / "hiv.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in tables.items():
            archive.writestr(f"hiv/{name}.csv.gz", gzip.compress(text.encode()))
    built = read_ogb_csv(path)
    assert built.graphs[0].edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert built.graphs[0].edge_attr.tolist() == [[0, 0, 1], [0, 0, 1], [3, 0, 0], [3, 0, 0]]
    assert built.graphs[1].x.tolist() == [[3] * 9, [4] * 9]
    assert built.graphs.y.tolist() == [[0.0], [1.0]]
    assert built.splits[0].train.tolist() == [1]


def test_a_mark_at_the_beginning_of_a_graph6_file_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "a.g6").write_bytes(b"\xef\xbb\xbfBw\nA_\n")
    assert len(read_graph6(tmp_path / "a.g6")[0]) == 2


@pytest.mark.parametrize(
    ("line", "name"), [(":Fa@x^", "sparse6"), ("&B?_", "digraph6"), (";Fa", "incremental sparse6")]
)
def test_other_formats_of_its_family_are_named(line: str, name: str) -> None:
    with pytest.raises(DataError, match=f"a line of {name}, which is not read: expected graph6"):
        parse_graph6([line])


def test_the_folder_of_pyg_s_downloads_is_read(tmp_path: Path) -> None:
    write_tu(tmp_path / "X" / "raw")
    assert torch.equal(read_tu(tmp_path / "X").graphs.edge_index, read_tu(tmp_path / "X" / "raw").graphs.edge_index)


def test_attributes_of_edges_belong_to_their_rows_and_come_before_labels(tmp_path: Path) -> None:
    changes = {"edge_attributes": "".join(f"{i}.5\n" for i in range(TU["edge_labels"].count("\n")))}
    graphs = read_tu(write_tu(tmp_path / "X", **changes)).graphs
    edges = [tuple(map(int, row.split(","))) for row in TU["A"].splitlines()]
    assert graphs.edge_attr is not None
    shift = torch.repeat_interleave(graphs.node_ptr[:-1], graphs.edge_ptr.diff())
    found = [(u, v) for u, v in (graphs.edge_index + shift + 1).t().tolist()]
    rows = [edges.index(edge) if edge in edges else edges.index(edge[::-1]) for edge in found]
    assert graphs.edge_attr.view(-1).tolist() == [row + 0.5 for row in rows]
