"""TrainedModel models by name: files that `pathnn reproduce TARGET --export` wrote, in the cache or beside the code."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathnn.nn.path_nn import PathNN

NON_COMMERCIAL = ("peptides-func-ap", "peptides-func-sp+")
"""Models of the repository that were trained on CC BY-NC data; the wheel, which is under MIT, does not contain them."""


def model_folders() -> list[Path]:
    """Where trained models are looked for, in this order: the user's cache, the installed package, the repository."""
    from pathnn.files import cache_dir

    package = Path(__file__).parents[1]
    return [cache_dir() / "models", package / "models", package.parents[1] / "models"]


def pretrained_names() -> list[str]:
    """The names that `PathNN.from_pretrained` knows here."""
    return sorted({file.stem for folder in model_folders() for file in folder.glob("*.safetensors")})


def pretrained_file(name: str) -> Path:
    """The file of a trained model.

    >>> pretrained_file("mnist")
    Traceback (most recent call last):
    ...
    ValueError: there is no trained model 'mnist' here...
    """
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
    hint = f"there are {', '.join(known)}" if known else "there are none"
    raise ValueError(f"there is no trained model {name!r} here: {hint} (looked in {places}).")


def load_pretrained(name: str) -> PathNN:
    """A trained PathNN by name, in evaluation mode; see its card `models/NAME.md`."""
    # The file's format belongs to the engine, which imports this package: not at import.
    from pathnn.nn.path_nn import PathNN
    from pathnn.training.checkpoint import load_model

    model = load_model(pretrained_file(name)).model
    if not isinstance(model, PathNN):
        raise ValueError(f"the trained model {name!r} is a {type(model).__name__}, not a PathNN: use load_model.")
    return model
