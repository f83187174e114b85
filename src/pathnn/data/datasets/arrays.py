"""Reading `.npz` files as tensors, without pickles, with an error that names what is missing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from pathnn.data.errors import ARCHIVE_ERRORS, DataError


def load_arrays(path: Path, names: Sequence[str]) -> dict[str, Tensor]:
    """The arrays `names` of an `.npz` file as tensors."""
    try:
        # numpy would leave a damaged file open
        with path.open("rb") as content, np.load(content, allow_pickle=False) as file:
            missing = sorted(set(names) - set(file.files))
            if missing:
                raise DataError(f"{path} lacks the arrays {missing}.")
            return {name: torch.from_numpy(file[name]) for name in names}
    except (*ARCHIVE_ERRORS, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{path} cannot be read as .npz: {error}. Put a whole copy in its place.") from error
