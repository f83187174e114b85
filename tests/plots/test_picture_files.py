"""A picture that cannot be written leaves the one that was there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pathnn.plots import trees
from pathnn_reproduction.figures import figures as files


class Broken:
    """Ends in the middle of its file."""

    def savefig(self, file: Any, **options: Any) -> None:
        file.write(b"half")
        raise OSError(28, "No space left on device")


@pytest.mark.parametrize("save", [trees.save, lambda figure, path: files.save_picture(figure, path, dpi=80)])
def test_half_a_picture_is_no_picture(tmp_path: Path, save: Any) -> None:
    path = tmp_path / "old.svg"
    path.write_bytes(b"whole")
    with pytest.raises(OSError, match="No space left"):
        save(Broken(), path)
    assert [(file.name, file.read_bytes()) for file in tmp_path.iterdir()] == [("old.svg", b"whole")]
