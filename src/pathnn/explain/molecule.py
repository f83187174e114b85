"""Scores on a molecule: drawn by rdkit (extra `mol`), and its paths in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pathnn.explain.explanation import Edge, PathScore
from pathnn.explain.tint import tint

BONDS = {"SINGLE": "–", "DOUBLE": "=", "TRIPLE": "≡", "AROMATIC": "∶"}


class Molecule:
    """A molecule to draw on and to name paths in; atoms are numbered as rdkit does: in the order of the SMILES, from 0,
    without the hydrogens that it leaves out.

    >>> Molecule("CCO").words(PathScore((0, 1, 2), 0.5))
    'C0–C1–O2'
    """

    def __init__(self, smiles: str) -> None:
        from rdkit import Chem

        self._mol: Any = Chem.MolFromSmiles(smiles)
        if self._mol is None:
            raise ValueError(f"{smiles!r} is no molecule that rdkit can read.")

    def words(self, path: PathScore) -> str:
        """A path as its atoms and bonds."""
        text = self._atom(path.vertices[0])
        for edge, atom in zip(path.edges, path.vertices[1:], strict=True):
            bond = self._mol.GetBondBetweenAtoms(*edge)
            text += BONDS.get(bond.GetBondType().name, "–") + self._atom(atom)
        return text

    def draw(self, vertices: Mapping[int, float], edges: Mapping[Edge, float], *, numbers: bool = True) -> str:
        """An SVG with atoms and bonds coloured by their scores, the largest the deepest; `numbers` at the atoms."""
        from rdkit.Chem.Draw import rdMolDraw2D

        most = max((abs(score) for score in (*vertices.values(), *edges.values())), default=0.0)
        bonds = {self._mol.GetBondBetweenAtoms(*edge).GetIdx(): score for edge, score in edges.items()}
        drawer = rdMolDraw2D.MolDraw2DSVG(-1, -1)  # as large as the molecule needs
        options: Any = drawer.drawOptions()
        options.addAtomIndices, options.clearBackground, options.prepareMolsBeforeDrawing = numbers, False, False
        drawer.DrawMolecule(
            rdMolDraw2D.PrepareMolForDrawing(self._mol, addChiralHs=False),  # no atoms that the model did not see
            highlightAtoms=list(vertices),
            highlightAtomColors={atom: tint(score, most) for atom, score in vertices.items()},
            highlightBonds=list(bonds),
            highlightBondColors={bond: tint(score, most) for bond, score in bonds.items()},
        )
        drawer.FinishDrawing()
        svg: str = drawer.GetDrawingText()
        return svg[svg.index("<svg") :]

    def _atom(self, number: int) -> str:
        return f"{self._mol.GetAtomWithIdx(number).GetSymbol()}{number}"
