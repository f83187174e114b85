"""Draw scores as colours: orange raises the prediction, blue lowers it."""

from __future__ import annotations

from collections.abc import Collection as Container, Mapping, Sequence
from functools import cached_property
from typing import Any

from torch import Tensor

from pathnn.data.readers.molecules import morgan_generator
from pathnn.explain.explanation import Edge, PathScore
from pathnn.plots.graphs import MAX_VERTICES, graph_layout, sketch
from pathnn.plots.page import make_page, svg

Color = tuple[float, float, float]
"""Red, green and blue, from 0 to 1."""

MORE, LESS = (0.902, 0.624, 0.0), (0.337, 0.706, 0.914)
"""Okabe and Ito's orange and sky blue, which colour-blind readers can distinguish."""


def tint(score: float, most: float) -> Color:
    """Return the colour of a score: white for 0, and the full colour for an absolute score of `most`."""
    part = min(abs(score) / most, 1.0) if most > 0 else 0.0
    red, green, blue = (1.0 - part * (1.0 - channel) for channel in (MORE if score > 0 else LESS))
    return (red, green, blue)


def hex_color(color: Color) -> str:
    """Return a colour in hexadecimal notation, as web pages and matplotlib read it."""
    return "#" + "".join(f"{round(255 * channel):02x}" for channel in color)


MAX_ATOMS = 400
"""The largest molecule that is drawn as a whole: the time grows with the third power of the number of atoms."""

AROUND = 3
"""How many bonds around a path are drawn in a larger molecule."""

PLAIN = {"B", "C", "N", "O", "P", "S", "F", "Cl", "Br", "I", "b", "c", "n", "o", "p", "s"}
"""The atoms that SMARTS writes without brackets."""

SMARTS = {"SINGLE": "-", "DOUBLE": "=", "TRIPLE": "#", "AROMATIC": ":"}
BONDS = {"SINGLE": "–", "DOUBLE": "=", "TRIPLE": "≡", "AROMATIC": "∶"}


class Molecule:
    """Draw scores on a molecule, and write its paths as text; atoms are numbered in the order of the SMILES."""

    vertices, edges, whole = "atoms", "bonds", "molecule"

    def __init__(self, smiles: str) -> None:
        from rdkit import Chem

        self._mol: Any = Chem.MolFromSmiles(smiles)
        if self._mol is None:
            raise ValueError(f"{smiles!r} is not a molecule that rdkit can read.")

    def words(self, path: PathScore) -> str:
        """Return the atoms and bonds of a path, with the numbers of the atoms."""
        text = self._atom(path.vertices[0])
        for edge, atom in zip(path.edges, path.vertices[1:], strict=True):
            bond = self._mol.GetBondBetweenAtoms(*edge)
            text += BONDS.get(bond.GetBondType().name, "–") + self._atom(atom)
        return text

    def pattern(self, path: PathScore) -> str:
        """Return a path as SMARTS, the same in both directions."""
        atoms = [self._symbols[v] for v in path.vertices]
        bonds = [SMARTS.get(self._mol.GetBondBetweenAtoms(*edge).GetBondType().name, "~") for edge in path.edges]
        both = (zip(parts[0], ["", *parts[1]], strict=True) for parts in ((atoms, bonds), (atoms[::-1], bonds[::-1])))
        return min("".join(bond + atom for atom, bond in pairs) for pairs in both)

    @cached_property
    def substructures(self) -> dict[int, tuple[str, list[set[int]]]]:
        """Return the substructures that Morgan counts count, by column: as SMILES, and the atoms of each occurrence."""
        from rdkit import Chem
        from rdkit.Chem import rdFingerprintGenerator

        more: Any = rdFingerprintGenerator.AdditionalOutput()
        more.AllocateBitInfoMap()
        morgan_generator().GetCountFingerprint(self._mol, additionalOutput=more)
        found = {}
        for column, places in more.GetBitInfoMap().items():
            around = [list(Chem.FindAtomEnvironmentOfRadiusN(self._mol, radius, atom)) for atom, radius in places]
            ends = [[self._mol.GetBondWithIdx(bond) for bond in bonds] for bonds in around]
            atoms = [
                {atom, *(end for bond in bonds for end in (bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()))}
                for (atom, _), bonds in zip(places, ends, strict=True)
            ]
            found[column] = Chem.MolFragmentToSmiles(self._mol, sorted(atoms[0]), around[0]), atoms
        return found

    @cached_property
    def _symbols(self) -> list[str]:
        """Return each atom as SMARTS: its element, in lower case if it is aromatic, and its charge."""
        found = []
        for atom in self._mol.GetAtoms():
            charge, symbol = atom.GetFormalCharge(), atom.GetSymbol()
            symbol = symbol.lower() if atom.GetIsAromatic() else symbol
            sign = "" if charge == 0 else ("+" if charge > 0 else "-") + (str(abs(charge)) if abs(charge) > 1 else "")
            found.append(symbol if symbol in PLAIN and not charge else f"[{symbol}{sign}]")
        return found

    def draw(self, vertices: Mapping[int, float], edges: Mapping[Edge, float], *, numbers: bool = True) -> str:
        """Return an SVG with atoms and bonds coloured by their scores; `numbers` adds the numbers of the atoms.

        Of more than `MAX_ATOMS` atoms, only the surroundings of `vertices` are drawn, or "" if these are too many.
        """
        from rdkit.Chem.Draw import rdMolDraw2D

        most = max((abs(score) for score in (*vertices.values(), *edges.values())), default=0.0)
        mol, number = self._shown(vertices)
        if not number:
            return ""
        vertices = {number[atom]: score for atom, score in vertices.items()}
        bonds = {mol.GetBondBetweenAtoms(number[u], number[v]).GetIdx(): score for (u, v), score in edges.items()}
        drawer = rdMolDraw2D.MolDraw2DSVG(-1, -1)  # as large as the molecule needs
        options: Any = drawer.drawOptions()
        options.addAtomIndices, options.clearBackground, options.prepareMolsBeforeDrawing = numbers, False, False
        drawer.DrawMolecule(
            mol,
            highlightAtoms=list(vertices),
            highlightAtomColors={atom: tint(score, most) for atom, score in vertices.items()},
            highlightBonds=list(bonds),
            highlightBondColors={bond: tint(score, most) for bond, score in bonds.items()},
        )
        drawer.FinishDrawing()
        drawn: str = drawer.GetDrawingText()
        return drawn[drawn.index("<svg") :]

    @cached_property
    def _prepared(self) -> Any:
        from rdkit.Chem.Draw import rdMolDraw2D

        return rdMolDraw2D.PrepareMolForDrawing(self._mol, addChiralHs=False)  # only atoms that the model has read

    def _shown(self, atoms: Container[int]) -> tuple[Any, dict[int, int]]:
        """Return the molecule, or a part of a large one, and the number of each atom in it."""
        from rdkit import Chem
        from rdkit.Chem.Draw import rdMolDraw2D

        if self._mol.GetNumAtoms() <= MAX_ATOMS:
            return self._prepared, {i: i for i in range(self._mol.GetNumAtoms())}
        near = set(atoms) if len(atoms) <= MAX_ATOMS else set()
        for _ in range(AROUND):
            near |= {other.GetIdx() for i in near for other in self._mol.GetAtomWithIdx(i).GetNeighbors()}
        part = Chem.RWMol(self._mol)
        part.BeginBatchEdit()
        for i in set(range(self._mol.GetNumAtoms())) - near:
            part.RemoveAtom(i)
        part.CommitBatchEdit()
        drawn = rdMolDraw2D.PrepareMolForDrawing(part, kekulize=False, addChiralHs=False)
        return drawn, {i: place for place, i in enumerate(sorted(near))}

    def _atom(self, number: int) -> str:
        return f"{self._mol.GetAtomWithIdx(number).GetSymbol()}{number}"


class GraphPicture:
    """Draw scores on a graph, and write its paths as the numbers of the vertices, counted from 0."""

    vertices, edges, whole = "vertices", "edges", "graph"

    def __init__(self, edge_index: Tensor, num_nodes: int, kinds: Sequence[Sequence[int]] | None = None) -> None:
        self.edge_index, self.num_nodes, self.kinds = edge_index, num_nodes, kinds

    @cached_property
    def _positions(self) -> Any:
        return graph_layout(self.edge_index, self.num_nodes)

    def words(self, path: PathScore) -> str:
        """Return the numbers of the vertices of a path."""
        return "–".join(map(str, path.vertices))

    def pattern(self, path: PathScore) -> str:
        """Return the categories of the vertices of a path, or stars without categories; the same in both directions."""
        names = ["*" if self.kinds is None else "/".join(map(str, self.kinds[v])) for v in path.vertices]
        return "–".join(min(names, names[::-1]))

    def draw(self, vertices: Mapping[int, float], edges: Mapping[Edge, float], *, numbers: bool = True) -> str:
        """Return an SVG with vertices and edges coloured by their scores, or "" for a graph that is too large."""
        if not 0 < self.num_nodes <= MAX_VERTICES:
            return ""
        most = max((abs(score) for score in (*vertices.values(), *edges.values())), default=0.0)
        labels = [str(v) if numbers else "" for v in range(self.num_nodes)]
        graph = sketch(self.edge_index, self.num_nodes, labels=labels, positions=self._positions)
        figure, (axes,) = make_page([graph.size], [""])
        fills = [hex_color(tint(vertices.get(v, 0.0), most)) for v in range(self.num_nodes)]
        graph.draw(axes, fills=fills)
        for (u, v), score in edges.items():
            axes.plot(*graph.points[[u, v]].T, color=hex_color(tint(score, most)), linewidth=5, zorder=0.5)
        return svg(figure)


Picture = Molecule | GraphPicture
