"""The wheel, which is under MIT, has the models of data that may be used commercially, and no others."""

from __future__ import annotations

import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import pathnn
from pathnn import hub
from pathnn.hub import NON_COMMERCIAL
from pathnn.inference.predictor import load_run
from pathnn.nn import PathNN

ROOT = Path(__file__).resolve().parents[1]
MODELS = {path.stem: path.with_suffix(".md").read_text() for path in (ROOT / "models").glob("*.safetensors")}


def allowed() -> set[str]:
    """The files of `models` that belong into the wheel."""
    free = [name for name in MODELS if name not in NON_COMMERCIAL]
    return {"README.md", *(f"{name}.{suffix}" for name in free for suffix in ("md", "safetensors"))}


def test_models_of_non_commercial_data_are_those_whose_card_says_so() -> None:
    assert {name for name, card in MODELS.items() if "BY-NC" in card} == set(NON_COMMERCIAL)
    for name in NON_COMMERCIAL:
        assert "**Licence** of the weights: CC BY-NC 4.0" in MODELS[name]
    assert "CC BY-NC" in (ROOT / "models" / "README.md").read_text()


def test_the_build_is_told_which_models_to_include() -> None:
    """Hatchling excludes nothing from a folder that is force-included, so every file is named."""
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    expected = {f"models/{name}": f"pathnn/models/{name}" for name in allowed()}
    assert build["force-include"] == expected
    assert build["packages"] == ["src/pathnn"]
    assert set(build) == {"force-include", "packages"}


@pytest.mark.slow
def test_the_wheel_has_no_other_models(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(tmp_path), str(ROOT)]
    built = subprocess.run(command, capture_output=True, text=True)
    if "hatchling" in built.stderr and built.returncode:
        pytest.skip("pip cannot install hatchling here")
    assert built.returncode == 0, built.stderr
    names = zipfile.ZipFile(next(tmp_path.glob("*.whl"))).namelist()
    assert {name.removeprefix("pathnn/models/") for name in names if name.startswith("pathnn/models/")} == allowed()
    assert not [name for name in names if "peptides-func" in name]
    assert "pathnn/explain/page.html" in names, "files that are not Python"


@pytest.mark.parametrize("name", NON_COMMERCIAL)
def test_where_to_get_a_model_that_is_not_in_the_wheel(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "cache" / "models"
    monkeypatch.setattr(hub, "model_folders", lambda: [cache, tmp_path / "site-packages"])
    for load in (PathNN.from_pretrained, lambda name: load_run(Path(name))):
        with pytest.raises(ValueError, match=r"not in the wheel.*CC BY-NC 4\.0.*clone") as error:
            load(name)
        assert f"models/{name}.safetensors" in str(error.value)
        assert str(cache) in str(error.value)
    cache.mkdir(parents=True)
    (cache / f"{name}.safetensors").write_bytes((ROOT / "models" / f"{name}.safetensors").read_bytes())
    assert isinstance(PathNN.from_pretrained(name), PathNN)


def test_the_citation_has_the_version_of_the_package() -> None:
    citation = (ROOT / "CITATION.cff").read_text()
    assert f"\nversion: {pathnn.__version__}\n" in citation
