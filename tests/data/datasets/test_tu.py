"""Files of folds that are none are refused with a sentence."""

import json
from pathlib import Path

import pytest

from pathnn.data import DataError
from pathnn.data.datasets.tu import read_folds


@pytest.mark.parametrize("folds", [[{"model_selection": [[1]], "test": [0]}], [{"test": [0]}], {"a": 1}, 7])
def test_folds_that_are_none(folds: object, tmp_path: Path) -> None:
    path = tmp_path / "PROTEINS_splits.json"
    path.write_text(json.dumps(folds))
    with pytest.raises(DataError, match="expected a JSON list of folds with test, train and validation"):
        read_folds(path, "PROTEINS")
