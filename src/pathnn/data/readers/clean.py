"""Clean molecules: remove salts and solvents, neutralise charges, and choose one tautomer."""

from __future__ import annotations

from functools import cache
from typing import Any, Literal

Clean = Literal["salts", "tautomers"]


@cache
def _steps(clean: Clean) -> tuple[Any, ...]:
    """Return the functions that clean a molecule, in order."""
    from rdkit.Chem.MolStandardize import rdMolStandardize

    salts = (rdMolStandardize.LargestFragmentChooser(preferOrganic=True).choose, rdMolStandardize.Uncharger().uncharge)
    return salts if clean == "salts" else (*salts, rdMolStandardize.TautomerEnumerator().Canonicalize)


def clean_smiles(text: str | None, clean: Clean | None) -> str | None:
    """Return the SMILES of a cleaned molecule; the text itself if there is nothing to clean, or no molecule.

    "salts" keeps the largest organic fragment and neutralises it; "tautomers" also chooses rdkit's canonical tautomer.

    >>> clean_smiles("CC(=O)[O-].[Na+]", "salts"), clean_smiles("C(", "salts")
    ('CC(=O)O', 'C(')
    >>> clean_smiles("OC1=CC=CC=N1", "tautomers")
    'O=c1cccc[nH]1'
    """
    if clean is None or text is None:
        return text
    from rdkit import Chem, rdBase

    quiet = rdBase.BlockLogs()
    try:
        molecule: Any = Chem.MolFromSmiles(text)
        if molecule is None or molecule.GetNumAtoms() == 0:
            return text
        for step in _steps(clean):
            molecule = step(molecule)
        return str(Chem.MolToSmiles(molecule))
    except (RuntimeError, ValueError):  # rdkit gives up on a few molecules
        return text
    finally:
        del quiet
