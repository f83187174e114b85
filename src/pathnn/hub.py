"""Find trained models: by name in the user's cache, in the installed package, or in a clone of the repository; in a
folder that `save_pretrained` wrote; or on the Hugging Face Hub.

`pathnn reproduce TARGET --export` writes the files with names; a card `models/NAME.md` describes each.
"""

from __future__ import annotations

import re
from os import PathLike, fspath
from pathlib import Path

from pathnn.files import cache_dir

NON_COMMERCIAL = ("peptides-func-ap", "peptides-func-sp+")
"""Models of the repository that were trained on CC BY-NC data; the wheel, which is under MIT, does not contain them."""


def model_folders() -> list[Path]:
    """Return the folders that are searched, in this order: the user's cache, the package, the repository."""
    package = Path(__file__).parent
    return [cache_dir() / "models", package / "models", package.parents[1] / "models"]


def pretrained_names() -> list[str]:
    """Return the names of the trained models on this machine."""
    return sorted({file.stem for folder in model_folders() for file in folder.glob("*.safetensors")})


def pretrained_file(name: str) -> Path:
    """Return the file of a trained model."""
    for folder in model_folders():
        file = folder / f"{name}.safetensors"
        if file.is_file():
            return file
    if name in NON_COMMERCIAL:
        raise ValueError(
            f"the trained model {name!r} is not in the wheel: its licence is CC BY-NC 4.0 (that of its training data), "
            f"the wheel's is MIT. Copy models/{name}.safetensors of a clone of the repository to {model_folders()[0]}."
        )
    known = pretrained_names()
    places = ", ".join(map(str, model_folders()))
    hint = f"expected one of {', '.join(known)}" if known else "none is installed"
    raise ValueError(f"there is no trained model {name!r} here: {hint} (searched {places}).")


WEIGHTS, CONFIG = "model.safetensors", "config.json"
"""The files of a folder of a trained model, the only ones that are downloaded."""


def find_model(source: str | PathLike[str]) -> Path:
    """Return the model file of a folder, of a name, or of a repository "owner/name" of the Hugging Face Hub."""
    name = fspath(source)
    if Path(name).is_dir():
        return Path(name) / WEIGHTS
    if isinstance(source, str) and re.fullmatch(r"\w[\w.-]*/\w[\w.-]*", name):
        return _download(name) / WEIGHTS
    return pretrained_file(name)


def _download(repository: str) -> Path:
    """Return a local folder with the weights and the config of a repository."""
    try:
        from huggingface_hub import snapshot_download
    except ImportError:
        raise ValueError(
            f"there is no folder {repository!r} here. If it is a model of the Hugging Face Hub, install the extra hub: "
            "pip install 'pathnn[hub]'."
        ) from None
    try:
        return Path(snapshot_download(repository, allow_patterns=[WEIGHTS, CONFIG]))
    except (OSError, ValueError) as error:  # no such repository, no network, no access
        raise ValueError(
            f"{repository!r} is no folder here, and the Hugging Face Hub gives no model: {error}"
        ) from error
