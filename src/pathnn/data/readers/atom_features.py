"""Features of atoms and bonds: "cip" for a user's molecules, "ogb" for models trained on OGB's data.

Both have nine codes per atom and three per bond.

- "cip": the features of PyG (`torch_geometric.utils.from_smiles`), with the labels of Cahn, Ingold and Prelog for
  stereochemistry: R, S, E and Z, and r, s, e and z where only substituents that are mirror images of each other make
  the difference. They do not depend on how a SMILES is written.
- "ogb": the features of the Open Graph Benchmark, which ogbg-molhiv and Peptides have. Atoms are in rdkit's order. The
  chirality of an atom is rdkit's tag, which depends on that order, so a prediction can depend on how a SMILES with @
  is written.
"""

from __future__ import annotations

from pathnn.data.readers.molecules import MoleculeFeatures as MoleculeFeatures
from pathnn.data.task import Categorical
from pathnn.nn.presets import OGB_ATOMS, OGB_BONDS

FEATURES: dict[MoleculeFeatures, tuple[Categorical, Categorical]] = {
    "cip": (Categorical((119, 5, 12, 13, 10, 6, 8, 2, 2)), Categorical((22, 5, 2))),
    "ogb": (Categorical(OGB_ATOMS), Categorical(OGB_BONDS)),
}
"""The features of atoms and of bonds."""
