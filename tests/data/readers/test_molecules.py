"""Molecules are read as the obvious way reads them, one at a time or many, in one process or several."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import torch

pytest.importorskip("rdkit", reason="molecules need rdkit (extra mol)")

from rdkit import Chem, rdBase

from pathnn.data.errors import DataError
from pathnn.data.readers import smiles as smiles_module
from pathnn.data.readers.descriptors import Descriptors
from pathnn.data.readers.molecules import MoleculeFeatures, read_molecules
from pathnn.data.readers.pool import PIECE, MoleculePool, MoleculeReader
from pathnn.data.readers.smiles import pack_molecules, smiles_graphs
from pathnn.data.readers.table import Table, open_table
from slow_molecules import ACHIRAL, CHIRAL, slow_molecule

STRANGE = (
    None, "", " ", "C(", "nonsense", "C(C)(C)(C)(C)C", "c1ccc1c", "CCO ethanol", " CCO", "C C", "[CH3:1][OH:2]",
    "CC |atomProp:0.molAtomMapNumber.3|", "*~C", "[U+7]", "[C-8]", "F[S](F)(F)(F)(F)F", "N->[Pt]", "[H][H]", "[H]",
    "[2H]O[2H]", "[O][O]", "C[Pt@SP1](F)(Cl)Br", "C$C", "[Na+].[Cl-]", "c1ccccc1:c1ccccc1", "C" * 5001, "C1CC1.C1CC1",
    "[H]/N=C/C", "C/C=C/C", "CN=[N+]=[N-]", "CN(=O)=O", "[13CH4]", "[Fe+2]", "*", "C=[Si]", "O=[Cl](=O)(=O)O",
)  # fmt: skip


def equal(texts: list[str | None], features: MoleculeFeatures) -> None:
    """Compare with the obvious way, entry for entry."""
    quiet = rdBase.BlockLogs()
    slow = [slow_molecule(text, features) for text in texts]
    del quiet
    good = [one for one in slow if not isinstance(one, str)]
    found, problems = read_molecules(texts, features)
    assert problems == {i: one for i, one in enumerate(slow) if isinstance(one, str)}
    assert found.num_atoms.tolist() == [len(one.atoms) for one in good]
    assert found.num_bonds.tolist() == [len(one.bonds) for one in good]
    for i, name in enumerate(("atoms", "bonds", "ends", "order")):
        expected = np.concatenate([one[i] for one in good])
        assert found[i].dtype == expected.dtype
        assert np.array_equal(found[i], expected), name


def random_smiles(text: str) -> str:
    return str(Chem.MolToSmiles(Chem.MolFromSmiles(text), doRandom=True))


@pytest.mark.parametrize("features", ["cip", "ogb"])
def test_strange_and_chiral_molecules_are_read_as_the_obvious_way_reads_them(features: MoleculeFeatures) -> None:
    known = [*CHIRAL.values(), *ACHIRAL.values()]
    canonical = [Chem.MolToSmiles(Chem.MolFromSmiles(text)) for text in known]
    equal([*STRANGE, *known, *canonical, *map(random_smiles, known)], features)


@pytest.mark.parametrize("file", ["moses.csv.xz", "chembl31_sample.csv.xz", "ogbg_molhiv_mol.csv.gz"])
@pytest.mark.parametrize("features", ["cip", "ogb"])
def test_real_molecules_are_read_as_the_obvious_way_reads_them(
    file: str, features: MoleculeFeatures, mirror: Path
) -> None:
    if not (mirror / "molecules" / file).exists():
        pytest.skip(f"no molecules/{file} in PATHNN_MIRROR")
    with open_table(mirror / "molecules" / file) as reader:
        table = next(islice(reader.chunks(20_000), 1))
    texts = [text for text in table.column(table.smiles_column()) if text][::50]
    equal([*texts, *map(random_smiles, texts[::4])], features)


def test_no_molecules_are_arrays_without_rows() -> None:
    found, problems = read_molecules(["C("])
    assert (found.atoms.shape, found.bonds.shape, found.ends.shape, len(problems)) == ((0, 9), (0, 3), (0, 2), 1)


def test_several_processes_read_what_one_reads() -> None:
    texts = [*(text * (1 + i % 3) for i, text in enumerate(["CO", "C(", "c1ccccc1", "CC=O"] * 300)), None, ""]
    assert len(texts) > 2 * PIECE
    results = []
    for processes in (0, 2):
        with MoleculePool(MoleculeReader(descriptors=Descriptors.of("standard")), processes) as pool:
            first, second = pool.read(texts), pool.read(["CCO"])
            results.append((first(), second()))
    for one, other in zip(*results, strict=True):
        assert one.problems == other.problems
        assert np.array_equal(one.descriptors, other.descriptors, equal_nan=True)
        graphs, others = pack_molecules(one.molecules), pack_molecules(other.molecules)
        assert len(graphs) == len(one.descriptors)
        assert all(torch.equal(tensor, others.tensors()[name]) for name, tensor in graphs.tensors().items())


def test_an_unknown_descriptor_is_named_before_processes_start() -> None:
    with pytest.raises(DataError, match="no descriptor 'Nonsense'"):
        MoleculePool(MoleculeReader(descriptors=Descriptors("rdkit", ("Nonsense",))), 1)


def test_a_process_that_ends_is_an_error_and_not_a_wait_for_ever() -> None:
    with pytest.raises(DataError, match="exit code"), MoleculePool(MoleculeReader(), 1) as pool:  # noqa: PT012
        pool.processes[0].kill()
        pool.processes[0].wait()
        pool.read(["CO"])()


def test_a_script_without_a_main_block_can_read_many_molecules(tmp_path: Path) -> None:
    """Also from a folder with a module that has the name of one of Python's."""
    (tmp_path / "json.py").write_text("raise SystemExit('the wrong json')\n")
    (tmp_path / "scripts").mkdir()
    script = tmp_path / "scripts" / "mine.py"
    script.write_text(
        "from pathnn.data.readers.pool import MoleculePool, MoleculeReader\n"
        "with MoleculePool(MoleculeReader('cip'), 1) as pool:\n"
        "    (molecules,), *_ = pool.read(['CCO'])()\n"
        "print(molecules.num_atoms.tolist())\n"
    )
    found = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, cwd=tmp_path, check=False, env=dict(os.environ)
    )
    assert (found.stdout, found.returncode) == ("[3]\n", 0), found.stderr


def test_reading_imports_no_torch() -> None:
    code = "import sys, pathnn.data.readers.pool; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_large_table_is_read_by_processes_and_bad_rows_are_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(smiles_module, "reader_processes", lambda rows: asked.append(rows) or 1)
    rows = (("CO", "1"), ("C(", "2"), ("CC", "x"), ("CCC", "4"))
    graphs, bad = smiles_graphs(Table("a", ("smiles", "y"), rows), targets=["y"], skip_invalid=True)
    assert asked == [3]
    assert [one.row for one in bad] == [2, 3]
    assert graphs.y is not None
    assert graphs.y.tolist() == [[1.0], [4.0]]
    assert graphs.names == ("CO", "CCC")


@pytest.mark.parametrize("processes", [0, 1])
def test_molecules_are_cleaned_before_they_are_read(processes: int) -> None:
    with MoleculePool(MoleculeReader("cip", "salts"), processes) as pool:
        (molecules,), *_ = pool.read(["CC(=O)[O-].[Na+]"])()
    assert np.array_equal(molecules.atoms, read_molecules(["CC(=O)O"])[0].atoms)
