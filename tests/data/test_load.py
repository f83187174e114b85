"""A user's own data: CSV of SMILES, graph6, TU folders, networkx, PyG; bad rows are counted and refused."""

from __future__ import annotations

import gzip
import zipfile
from dataclasses import replace
from pathlib import Path

import networkx as nx
import pytest
import torch
from torch_geometric.data import Batch, Data, InMemoryDataset

from pathnn.data import (
    BadRowsError,
    Categorical,
    Continuous,
    DataError,
    PackedGraphs,
    from_networkx,
    from_pyg,
    load_data,
    task_from_graphs,
)
from pathnn.data.task import guess_kind

needs_rdkit = pytest.mark.skipif(not __import__("importlib.util").util.find_spec("rdkit"), reason="no rdkit")
GOOD = "smiles,logS\nCCO,-0.5\nc1ccccc1,1.25\nC,0.0\n"
BAD = "id,SMILES,logS\n1,CCO,-0.5\n2,C1CC,1.0\n3,C(C)(C)(C)(C)C,1.0\n4,,1.0\n5,CC,\n6,CC,abc\n7,CC,inf\n8,CCC,2\n"


def csv_file(folder: Path, text: str, name: str = "mols.csv") -> Path:
    path = folder / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path


@needs_rdkit
@pytest.mark.parametrize("name", ["mols.csv", "mols.csv.gz"])
def test_a_csv_of_smiles_is_a_regression_task(tmp_path: Path, name: str) -> None:
    from torch_geometric.utils import from_smiles

    task = load_data(csv_file(tmp_path, GOOD, name))
    assert task.name == name
    assert task.target == "regression"
    assert task.graphs.y.tolist() == [[-0.5], [1.25], [0.0]]
    assert task.graphs.names == ("CCO", "c1ccccc1", "C")
    for text, data in zip(task.graphs.names, task.graphs, strict=True):
        expected = from_smiles(text)
        ours, theirs = (torch.cat([graph.edge_index, graph.edge_attr.t()]).t() for graph in (data, expected))
        assert torch.equal(data.x, expected.x), "canonical SMILES without stereo: nothing is moved"
        assert sorted(ours.tolist()) == sorted(theirs.tolist())


@needs_rdkit
def test_bad_rows_are_refused_with_number_and_reason(tmp_path: Path) -> None:
    path = csv_file(tmp_path, BAD)
    with pytest.raises(BadRowsError, match="6 of 8 rows") as info:
        load_data(path, targets=["logS"])
    reasons = {row.row: row.reason for row in info.value.rows}
    assert list(reasons) == [2, 3, 4, 5, 6, 7]
    assert "no molecule" in reasons[2]
    assert "valence" in reasons[3]
    assert "empty" in reasons[4]
    assert "missing" in reasons[5]
    assert "'abc', not a number" in reasons[6]
    assert "not a finite number" in reasons[7]
    assert "skip_invalid" in str(info.value)


@needs_rdkit
def test_bad_rows_can_be_left_out_and_are_reported(tmp_path: Path) -> None:
    task = load_data(csv_file(tmp_path, BAD), targets=["logS"], skip_invalid=True)
    assert task.graphs.names == ("CCO", "CCC")
    assert [row.row for row in task.skipped] == [2, 3, 4, 5, 6, 7]


@needs_rdkit
def test_targets_are_chosen(tmp_path: Path) -> None:
    text = "smiles,a,b,name\nCC,0,1.5,x\nCCC,1,2.5,y\nC,1,0,z\nO,0,0,w\n"
    path = csv_file(tmp_path, text)
    assert load_data(path).target == "none", "which of two numeric columns is meant must be said"
    assert load_data(path, targets=[]).graphs.y is None
    assert load_data(path, targets=["a"]).target == "binary"
    assert load_data(path, targets=["a", "b"]).graphs.y.shape == (4, 2)
    classes = load_data(path, targets=["a"], kind="class")
    assert classes.out_channels == 2
    assert classes.graphs.y.tolist() == [0, 1, 1, 0]
    with pytest.raises(DataError, match="no column 'c'"):
        load_data(path, targets=["c"])
    with pytest.raises(DataError, match="no column 'd'"):
        load_data(path, smiles="d")


@needs_rdkit
def test_text_targets_are_classes(tmp_path: Path) -> None:
    path = csv_file(tmp_path, "smiles,activity,n\nCC,low,10\nCCC,high,9\nnot one,middle,8\nC,low,10\nO,,10\n")
    task = load_data(path, targets=["activity"], skip_invalid=True)
    assert task.target == "class"
    assert task.classes == ("high", "low"), "middle was only in a row that was left out"
    assert task.graphs.y.tolist() == [1, 0, 1]
    assert task.rows() == [1, 2, 4]
    assert [bad.row for bad in task.skipped] == [3, 5]
    numbers = load_data(path, targets=["n"], kind="class", skip_invalid=True)
    assert numbers.classes == ("9", "10")
    assert numbers.graphs.y.tolist() == [1, 0, 1, 1]


def test_a_csv_without_smiles_says_which_columns_it_has(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no SMILES column: expected one called smiles, got"):
        load_data(csv_file(tmp_path, "x,y\n1,2\n"))
    with pytest.raises(DataError, match="no rows"):
        load_data(csv_file(tmp_path, "smiles\n"))


def test_a_graph6_file_is_a_task_of_pairs(tmp_path: Path) -> None:
    path = tmp_path / "a.g6"
    path.write_text("Bw\nBo\nA_\n")
    task = load_data(str(path))
    assert task.pair_index().tolist() == [[0, 1], [0, 2], [1, 2]]
    assert task.node_features == Continuous(1)
    assert task.target == "none"


def test_a_tu_folder_is_a_classification_task(tmp_path: Path) -> None:
    folder = tmp_path / "X"
    folder.mkdir()
    parts = {
        "A": "1,2\n2,1\n3,4\n4,3\n4,5\n5,4\n",
        "graph_indicator": "1\n1\n2\n2\n2\n",
        "graph_labels": "a\nb\n",
        "node_attributes": "0.5\n1.5\n2.5\n3.5\n4.5\n",
    }
    parts["graph_labels"] = "3\n8\n"
    for part, text in parts.items():
        (folder / f"X_{part}.txt").write_text(text)
    task = load_data(folder)
    assert task.target == "class"
    assert task.classes == ("3", "8")
    assert task.graphs[1].x.tolist() == [[2.5], [3.5], [4.5]]
    (folder / "X_node_attributes.txt").unlink()
    assert load_data(folder).graphs[1].x.tolist() == [[1, 0], [0, 1], [1, 0]], "degrees 1 and 2, one-hot"


def test_neither_file_nor_dataset(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="did you mean zinc"):
        load_data("zincc")
    path = tmp_path / "a.pdf"
    path.write_text("")
    with pytest.raises(DataError, match=r"of another type.* a table of molecules \(\.csv"):
        load_data(path)


def test_networkx_graphs() -> None:
    graph = nx.Graph([("b", "a"), ("a", "c"), ("a", "a")], y=2)
    nx.set_node_attributes(graph, {"a": 1, "b": 2, "c": 3}, "x")
    packed = from_networkx([graph, graph])
    assert packed[0].edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert packed[1].x.view(-1).tolist() == [2, 1, 3]
    assert packed.y.tolist() == [2, 2]
    assert task_from_graphs(packed).target == "class"
    with pytest.raises(DataError, match="directed"):
        from_networkx([nx.DiGraph([(0, 1)])])
    with pytest.raises(DataError, match="graph 1 has no y"):
        from_networkx([nx.Graph([(0, 1)], y=1), nx.path_graph(2)])
    with pytest.raises(DataError, match="vertex 3 has no x"):
        from_networkx([graph, nx.path_graph(2)])


def test_pyg_data_becomes_a_task() -> None:
    edge = torch.tensor([[0, 1], [1, 0]])
    data = [Data(x=torch.tensor([[1], [4]]), edge_index=edge, edge_attr=torch.rand(2, 3), y=i) for i in range(3)]
    task = task_from_graphs(from_pyg(data))
    assert task.node_features == Categorical((5,))
    assert task.edge_features == Continuous(3)
    assert task.out_channels == 3
    assert task.graphs.y.tolist() == [0, 1, 2]


def test_the_kind_of_target_is_found() -> None:
    edge = torch.tensor([[0, 1], [1, 0]])
    graphs = PackedGraphs.from_edges([edge] * 3, [2] * 3)
    for y, kind in (
        (None, "none"),
        (torch.tensor([0, 1, 2]), "class"),
        (torch.tensor([[0.0], [1.0], [1.0]]), "binary"),
        (torch.tensor([[0.0, 1.0]] * 3), "multilabel"),
        (torch.tensor([0.0, 0.0, 0.0]), "regression"),
        (torch.tensor([0.5, 1.0, 0.0]), "regression"),
    ):
        assert guess_kind(y) == kind
    with pytest.raises(DataError, match="needs targets"):
        task_from_graphs(graphs, kind="regression")
    with pytest.raises(DataError, match="negative"):
        task_from_graphs(replace(graphs, x=torch.full((6, 1), -1)))


@needs_rdkit
def test_one_number_is_one_class_and_nan_is_none(tmp_path: Path) -> None:
    path = csv_file(tmp_path, "smiles,code\nCCO,9\nCCC,9.0\nCC,3\nC,nan\n")
    task = load_data(path, targets=["code"], kind="class", skip_invalid=True)
    assert (task.classes, task.graphs.y.tolist()) == (("3", "9"), [1, 1, 0])
    assert [bad.row for bad in task.skipped] == [4]


def test_classes_of_graphs_keep_their_values() -> None:
    edge = torch.tensor([[0, 1], [1, 0]])
    graphs = from_pyg([Data(edge_index=edge, num_nodes=2, y=torch.tensor([y])) for y in (1234567, -1, 7)])
    task = task_from_graphs(graphs)
    assert (task.classes, task.graphs.y.tolist()) == (("-1", "7", "1234567"), [2, 0, 1])
    with pytest.raises(DataError, match="class of graph 1 is NaN"):
        task_from_graphs(replace(graphs, y=torch.tensor([0.0, float("nan"), 1.0])), kind="class")


def test_a_tu_file_with_words_is_named(tmp_path: Path) -> None:
    for part, text in {"A": "1, 2\n2, 1\n", "graph_indicator": "1\n1\n", "graph_labels": "bad\n"}.items():
        (tmp_path / f"MINE_{part}.txt").write_text(text)
    with pytest.raises(DataError, match=r"^MINE_graph_labels.txt: expected numbers .*'bad'.*[^.]\.$"):
        load_data(tmp_path)


def test_a_row_with_more_cells_than_the_header_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r'row 2: 3 values, but the header has 2\. Put values .* into "quotes"'):
        load_data(str(csv_file(tmp_path, "smiles,logS\nCCO,-0.5\nCCC,2,0\n")))


@needs_rdkit
def test_empty_cells_after_the_last_column_do_no_harm(tmp_path: Path) -> None:
    assert len(load_data(str(csv_file(tmp_path, "smiles,logS\nCCO,-0.5,\nCCC,2,,\nC,1\n"))).graphs) == 3


@needs_rdkit
def test_a_target_too_large_for_float32_is_a_bad_row(tmp_path: Path) -> None:
    table = csv_file(tmp_path, "smiles,logS\nCCO,-0.5\nCCC,1e39\nC,-inf\nCC,3e38\n")
    with pytest.raises(DataError, match="row 2: the target 'logS' is 1e39, not a finite number that float32 can hold"):
        load_data(str(table), targets=["logS"])
    task = load_data(str(table), targets=["logS"], skip_invalid=True)
    assert [bad.row for bad in task.skipped] == [2, 3]


@needs_rdkit
def test_excel_s_line_about_the_separator_is_passed_over(tmp_path: Path) -> None:
    assert len(load_data(str(csv_file(tmp_path, "sep=,\nsmiles,logS\nCCO,-0.5\nCCC,2\n"))).graphs) == 2


class Stored(InMemoryDataset):
    """A dataset as PyG has them: its attributes are those of all graphs together."""

    def __init__(self, graphs: list[Data]) -> None:
        super().__init__(None)
        self.data, self.slices = self.collate(graphs)


def test_datasets_of_pyg_are_packed_and_single_graphs_are_not():
    ring = torch.tensor([[0, 1, 2, 1, 2, 0], [1, 2, 0, 0, 1, 2]])
    dataset = Stored([Data(x=torch.full((3, 2), float(i)), edge_index=ring, y=torch.tensor([i])) for i in range(5)])
    assert from_pyg(dataset).y.tolist() == [0, 1, 2, 3, 4]
    assert from_pyg(dataset[1:3]).y.tolist() == [1, 2]
    for one in (dataset[0], Batch.from_data_list([dataset[0], dataset[1]])):
        with pytest.raises(ValueError, match=r"expected a dataset or a list, from_pyg\(\[data\]\)"):
            from_pyg(one)
    with pytest.raises(DataError, match=r"from_networkx\(\[graph\]\)"):
        from_networkx(nx.path_graph(3))


@needs_rdkit
def test_underscores_make_names_and_not_numbers(tmp_path: Path):
    cells = ["1_1", "1_2", "2_1", "1_1", "1_2", "2_1"]
    path = tmp_path / "clusters.csv"
    path.write_text("smiles,cluster\n" + "".join(f"{'C' * (i + 1)},{cell}\n" for i, cell in enumerate(cells)))
    task = load_data(path, targets=["cluster"])
    assert (task.target, task.classes) == ("class", ("1_1", "1_2", "2_1"))
    path.write_text(path.read_text() + "CCO,11\nCCN,12\n")
    with pytest.raises(DataError, match=r"row 1: the target 'cluster' is '1_1', not a number \(for classes"):
        load_data(path, targets=["cluster"])
    assert load_data(path, targets=["cluster"], kind="class").classes == ("11", "12", "1_1", "1_2", "2_1")


@pytest.mark.parametrize("number", [2, 3])
def test_whole_numbers_are_classes_in_a_row_or_in_a_column(number: int):
    edge = torch.tensor([[0, 1], [1, 0]])
    for shape in ((1,), (1, 1)):
        graphs = [Data(x=torch.ones(2, 1), edge_index=edge, y=torch.tensor(i % number).view(shape)) for i in range(12)]
        task = task_from_graphs(from_pyg(graphs))
        assert (task.target, task.out_channels, task.graphs.y.shape) == ("class", number, (12,))  # type: ignore[union-attr]


@needs_rdkit
def test_a_target_may_be_named_by_itself(tmp_path: Path):
    path = csv_file(tmp_path, GOOD)
    assert load_data(path, targets="logS").classes == load_data(path, targets=["logS"]).classes == ("logS",)


def tu_folder(folder: Path, **files: str) -> Path:
    folder.mkdir()
    for part, text in files.items():
        (folder / f"X_{part}.txt").write_text(text)
    return folder


TWO = {"A": "1,2\n2,1\n3,4\n4,3\n", "graph_indicator": "1\n1\n2\n2\n", "graph_labels": "0\n1\n"}


def test_the_codes_of_labels_are_kept_for_other_files(tmp_path: Path) -> None:
    whole = {**TWO, "node_labels": "5\n7\n9\n5\n", "edge_labels": "1\n1\n3\n3\n"}
    task = load_data(tu_folder(tmp_path / "whole", **whole))
    one = {"A": "1,2\n2,1\n", "graph_indicator": "1\n1\n", "graph_labels": "1\n"}
    part = {**one, "node_labels": "9\n5\n", "edge_labels": "3\n3\n"}
    alone = load_data(tu_folder(tmp_path / "part", **part), vocabulary=task.vocabulary)
    ours, theirs = task.graphs.select([1]), alone.graphs.select([0])
    for mine, other in ((ours.x, theirs.x), (ours.edge_attr, theirs.edge_attr)):
        assert mine is not None
        assert other is not None
        assert mine.tolist() == other.tolist()
    strange = tu_folder(tmp_path / "strange", **{**part, "node_labels": "9\n6\n"})
    with pytest.raises(DataError, match=r"_node_labels.txt, row 2: 6, which the model was not trained on"):
        load_data(strange, vocabulary=task.vocabulary)
    degrees = load_data(tu_folder(tmp_path / "degrees", **TWO)).vocabulary
    assert degrees == {"degrees": [[1.0]]}
    path = {"A": "1,2\n2,1\n2,3\n3,2\n", "graph_indicator": "1\n1\n1\n", "graph_labels": "1\n"}
    with pytest.raises(DataError, match=r"degrees of the vertices, row 2: 2, which"):
        load_data(tu_folder(tmp_path / "three", **path), vocabulary=degrees)


@pytest.mark.parametrize(
    ("part", "text", "message"),
    [
        ("A", "1,2,1\n2,1,1\n3,4,1\n4,3,1\n", "X_A.txt: 3 columns; expected 2"),
        ("A", "1\n2\n3\n4\n", "X_A.txt: 1 columns; expected 2"),
        ("A", "1,2\n2,1.5\n3,4\n4,3\n", "X_A.txt: row 2: expected whole numbers"),
        ("graph_labels", "0,1\n0,0\n", "X_graph_labels.txt: 2 columns; expected 1"),
        ("graph_indicator", "1\n1.5\n2\n2\n", "X_graph_indicator.txt: row 2: expected whole numbers"),
    ],
)
def test_tables_of_another_shape_are_refused(tmp_path: Path, part: str, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        load_data(tu_folder(tmp_path / "X", **{**TWO, part: text}))


def test_what_a_mac_adds_to_a_zip_is_passed_over(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "X.zip", "w") as archive:
        for part, text in TWO.items():
            archive.writestr(f"X/X_{part}.txt", "\ufeff" + text)
            archive.writestr(f"__MACOSX/X/._X_{part}.txt", b"\xff\xfe")
    assert len(load_data(tmp_path / "X.zip").graphs) == 2


@needs_rdkit
@pytest.mark.parametrize("text", ['CCO,"5 inch\nCCN,b\nCCC,c\n', 'CCO,"5 inch\nCCN,b\nCCC,"c\nCCCC,d\n'])
def test_a_quote_that_is_not_closed_does_not_swallow_rows(tmp_path: Path, text: str) -> None:
    with pytest.raises(DataError, match="A value that begins with a quote"):
        load_data(csv_file(tmp_path, "smiles,note\n" + text), targets=[])
    several_lines = csv_file(tmp_path, 'smiles,note\nCCO,"two\nlines"\nCC,b\n', "good.csv")
    assert len(load_data(several_lines, targets=[]).graphs) == 2


@needs_rdkit
def test_among_numbers_na_is_no_class(tmp_path: Path) -> None:
    path = csv_file(tmp_path, "smiles,active\nCC,0\nCCO,1\nCCC,NA\nCCN,1\n")
    with pytest.raises(BadRowsError, match="row 3: the target 'active' is missing"):
        load_data(path, targets="active", kind="class")
    assert load_data(path, targets="active", kind="class", skip_invalid=True).classes == ("0", "1")


@pytest.mark.parametrize("lines", [["Bw", "~??Bw", "~??Bw"], ["~??Bw", "Bw"]])
def test_a_graph6_line_in_a_longer_form_is_a_bad_row(tmp_path: Path, lines: list[str]) -> None:
    path = tmp_path / "graphs.g6"
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(BadRowsError, match="3 vertices written in 4 characters"):
        load_data(path)
    assert [graph.num_edges for graph in load_data(path, skip_invalid=True).graphs] == [6]


def test_columns_of_the_same_name_are_in_nobodys_way_unless_asked_for(tmp_path: Path) -> None:
    rows = "".join(f"{'C' * n},{n}.5,{n},{n}\n" for n in range(1, 13))
    (tmp_path / "own.csv").write_text(f"smiles,logS,note,note\n{rows}")
    assert load_data(tmp_path / "own.csv").classes == ("logS",)
    with pytest.raises(DataError, match="2 columns called 'note'"):
        load_data(tmp_path / "own.csv", targets="note")


@needs_rdkit
def test_a_record_of_an_sdf_that_cannot_be_read_is_a_bad_row(tmp_path: Path) -> None:
    from rdkit import Chem

    good = Chem.MolToMolBlock(Chem.MolFromSmiles("CCO")) + "> <logS>\n1.5\n\n$$$$\n"
    path = tmp_path / "my.sdf"
    path.write_text(good + "broken\n\n\n 99 99 oops\nM  END\n> <logS>\n7\n\n$$$$\n" + good)
    with pytest.raises(BadRowsError, match="row 2: 'broken' is no molecule: its atoms and bonds cannot be read"):
        load_data(path)
    task = load_data(path, skip_invalid=True)
    assert (task.classes, task.graphs.names, task.rows()) == (("logS",), ("CCO", "CCO"), [1, 3])
