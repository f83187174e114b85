"""The estimators follow the rules of scikit-learn, and train as `pathnn train` does."""

from __future__ import annotations

import io
import pickle
import re
import subprocess
import sys
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from unittest import SkipTest

import numpy as np
import pytest
import torch

pytest.importorskip("rdkit", reason="molecules need rdkit (extra mol)")
pytest.importorskip("sklearn", reason="the estimators need scikit-learn (extra chem)")

from rdkit import Chem
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import estimator_checks_generator
from sklearn.utils.validation import check_is_fitted, validate_data
from torch_geometric.data import Data
from torch_geometric.utils import from_smiles

from engine_tasks import one_thread as one_thread
from molecule_runs import MOLECULES
from pathnn import PathClassifier, PathRegressor
from pathnn.data import Split, load_data
from pathnn.data.splits import deal
from pathnn.inference import Predictor, embed
from pathnn.training import RunConfig, default_options, run

SIZES = np.array([float(len(text)) for text in MOLECULES])
FAST: dict[str, Any] = {"epochs": 2, "k": 2, "collection": "sp", "hidden_channels": 8, "device": "cpu"}


def regressor(**changes: Any) -> PathRegressor:
    return PathRegressor(**{**FAST, "random_state": 0, **changes})


def classifier(**changes: Any) -> PathClassifier:
    return PathClassifier(**{**FAST, "random_state": 0, **changes})


# scikit-learn's own checks


class RowsAsGraphs:
    """Makes a graph of each row of numbers, so that the checks, which give numbers, can train an estimator."""

    def fit(self, X: Any, y: Any) -> Any:
        return super().fit(self._rows(X, reset=True), y)

    def _outputs(self, X: Any) -> Any:
        check_is_fitted(self)
        return super()._outputs(self._rows(X, reset=False))

    def _rows(self, X: Any, *, reset: bool) -> list[Data]:
        X = validate_data(self, X, dtype=np.float32, reset=reset)
        edge = torch.tensor([[0, 1], [1, 0]])
        return [Data(x=torch.tensor(row).repeat(2, 1), edge_index=edge) for row in X]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = tags.input_tags.one_d_array = False
        return tags


class RowRegressor(RowsAsGraphs, PathRegressor):
    pass


class RowClassifier(RowsAsGraphs, PathClassifier):
    pass


NAMES = """
check_array_api_input check_classifier_data_not_an_array check_classifiers_classes check_classifiers_train
check_classifiers_multilabel_output_format_decision_function check_classifiers_multilabel_output_format_predict
check_classifiers_multilabel_output_format_predict_proba check_classifiers_multilabel_representation_invariance
check_dict_unchanged check_dont_overwrite_parameters check_dtype_object check_estimator_sparse_array
check_estimator_sparse_matrix check_estimator_sparse_tag check_estimators_dtypes check_estimators_empty_data_messages
check_estimators_fit_returns_self check_estimators_nan_inf check_estimators_overwrite_params check_estimators_pickle
check_f_contiguous_array_estimator check_fit2d_1feature check_fit2d_1sample check_fit2d_predict1d
check_fit_check_is_fitted check_fit_idempotent check_fit_score_takes_y check_methods_sample_order_invariance
check_methods_subset_invariance check_n_features_in check_n_features_in_after_fitting check_pipeline_consistency
check_positive_only_tag_during_fit check_readonly_memmap_input check_regressor_data_not_an_array
check_regressor_multioutput check_regressors_int check_regressors_no_decision_function check_regressors_train
check_supervised_y_2d
"""
NEED_NUMBERS = NAMES.split()
"""These checks train on numbers, which are no molecules: `RowsAsGraphs` passes them."""

NOT_RUN = {
    "check_array_api_input": "scikit-learn runs it only if SCIPY_ARRAY_API is set; molecules are no arrays of numbers",
    "check_classifiers_multilabel_output_format_decision_function": "the estimators have no decision_function",
}
"""These checks raise `SkipTest`, for these reasons."""

SMALL = {"epochs": 15, "k": 1, "collection": "sp", "hidden_channels": 16, "lr": 0.01, "device": "cpu"}
CHECKS = [
    pytest.param(estimator, check, id=f"{type(one).__name__}-{check.func.__name__}-{number}")
    for one in (PathRegressor(**SMALL), PathClassifier(**SMALL), RowRegressor(**SMALL), RowClassifier(**SMALL))
    for number, (estimator, check) in enumerate(estimator_checks_generator(one))
]


@pytest.mark.slow
@pytest.mark.parametrize(("estimator", "check"), CHECKS)
def test_checks_of_scikit_learn(estimator: Any, check: partial[None]) -> None:
    name = check.func.__name__
    try:
        if name in NEED_NUMBERS and not isinstance(estimator, RowsAsGraphs):
            with pytest.raises((ValueError, IndexError, AssertionError)):
                check(estimator)
        else:
            check(estimator)
    except SkipTest:
        assert name in NOT_RUN


# molecules in every form


def pandas_column(molecules: list[Any], *, frame: bool) -> Any:
    pandas = pytest.importorskip("pandas", reason="needs pandas (extra dev)")
    column = pandas.Series(molecules, name="smiles")
    return column.to_frame() if frame else column


FORMS = {
    "array": np.array,
    "object array": partial(np.array, dtype=object),
    "column": lambda smiles: np.array(smiles)[:, None],
    "tuple": tuple,
    "rows": lambda smiles: [[text] for text in smiles],
    "molecules": lambda smiles: [Chem.MolFromSmiles(text) for text in smiles],
    "column of molecules": lambda smiles: np.array([[Chem.MolFromSmiles(text)] for text in smiles]),
    "Series": partial(pandas_column, frame=False),
    "DataFrame": partial(pandas_column, frame=True),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_molecules_gives_the_same_model(form: str) -> None:
    expected = regressor().fit(MOLECULES, SIZES).predict(MOLECULES)
    given = FORMS[form](MOLECULES)
    found = regressor().fit(given, SIZES).predict(given)
    np.testing.assert_array_equal(found, expected)
    assert np.ptp(found) > 0


def test_pyg_graphs_are_trained_on() -> None:
    graphs = [from_smiles(text) for text in MOLECULES]
    scores = cross_val_score(regressor(), graphs, SIZES, cv=2)
    assert np.isfinite(scores).all()
    with pytest.raises(ValueError, match="PyG graphs: clean and descriptors"):
        regressor(clean="salts").fit(graphs, SIZES)
    with pytest.raises(ValueError, match="graph 59: expected torch_geometric"):
        regressor().fit([*graphs[:-1], "CC"], SIZES)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (["CC", "C(", None, 3.0, float("nan")], r"4 of 5 .*X\[1\]: 'C\(' is no.*X\[2\]: it is missing; X\[3\]: it is "
         r"3\.0, not SMILES.*X\[4\]: it is missing"),
        (["C("] * 9, r"9 of 9 molecules cannot be read .*X\[4\][^5]*\.\.\.\)"),
        ("CCO", "X is 'CCO': expected a list of SMILES"),
        (None, "X is None: expected a list"),
        ([], r"0 sample"),
        (np.array([["CC", "CO"]]), r"shape \(1, 2\): expected one column"),
    ],
)  # fmt: skip
def test_bad_molecules_are_named(X: Any, message: str) -> None:
    model = regressor().fit(MOLECULES, SIZES)
    with pytest.raises(ValueError, match=message):
        model.predict(X)
    with pytest.raises(ValueError, match=message):
        regressor().fit(X, np.arange(5 if X is None else len(X)) + 0.5)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epochs": 0}, "epochs=0"),
        ({"k": 2.5}, "k"),
        ({"validation_fraction": 1.0}, r"validation_fraction=1\.0"),
        ({"descriptors": "pH"}, "descriptors='pH'"),
        ({"settings": {"epoch": 3}}, "'epoch' does not exist: did you mean 'epochs'"),
        ({"metric": "f1"}, "f1"),
    ],
)
def test_wrong_parameters_are_refused_by_fit(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        regressor(**changes).fit(MOLECULES, SIZES)


def test_wrong_targets_are_refused() -> None:
    for y, message in (
        (SIZES[:-1], "inconsistent numbers of samples"),
        (np.where(SIZES > 5, np.nan, 1), "y contains NaN"),
    ):
        with pytest.raises(ValueError, match=message):
            regressor().fit(MOLECULES, y)
    with pytest.raises(ValueError, match="one class, 1"):
        classifier().fit(MOLECULES, np.ones(60, dtype=int))
    with pytest.raises(ValueError, match="n_samples=3: expected at least ten"):
        regressor().fit(MOLECULES[:3], SIZES[:3])
    with pytest.raises(ValueError, match="takes targets of 0 and 1"):
        classifier().fit(MOLECULES, np.stack([SIZES, SIZES], axis=1))
    with pytest.raises(NotFittedError):
        regressor().predict(MOLECULES)


# targets


def test_several_targets_may_be_unknown() -> None:
    y = np.stack([SIZES, 2 * SIZES], axis=1)
    y[::3, 1] = np.nan
    assert regressor().fit(MOLECULES, y).predict(MOLECULES[:4]).shape == (4, 2)
    assert regressor().fit(MOLECULES, SIZES[:, None]).predict(MOLECULES[:4]).shape == (4, 1)


@pytest.mark.parametrize("classes", [["no", "yes"], [False, True], [7, -1], ["a", "b", "c"], [1.0, 2.0, 5.0]])
def test_classes_keep_their_names(classes: list[Any]) -> None:
    y = np.array([classes[i % len(classes)] for i in range(60)])
    model = classifier().fit(MOLECULES, y)
    assert model.classes_.tolist() == sorted(classes)
    probability = model.predict_proba(MOLECULES)
    np.testing.assert_allclose(probability.sum(axis=1), 1, atol=1e-12)
    assert model.predict(MOLECULES).tolist() == model.classes_[probability.argmax(axis=1)].tolist()
    assert model.predict(MOLECULES).dtype == y.dtype


def test_two_classes_are_chosen_by_roc_auc_unless_one_is_too_rare() -> None:
    common, rare = np.arange(60) % 2, (np.arange(60) == 5).astype(int)
    assert classifier().fit(MOLECULES, common).model_.signature.metric_name == "ROC-AUC"
    assert classifier().fit(MOLECULES, rare).model_.signature.metric_name == "accuracy"
    assert classifier(metric="f1").fit(MOLECULES, common).model_.signature.metric_name == "F1"


def test_labels_have_a_column_each() -> None:
    y = np.stack([np.arange(60) % 2, SIZES > 5], axis=1).astype(float)
    y[:5, 0] = np.nan
    model = classifier().fit(MOLECULES, y)
    assert model.predict_proba(MOLECULES).shape == (60, 2)
    assert set(np.unique(model.predict(MOLECULES))) <= {0, 1}
    assert model.classes_.tolist() == [0, 1]


def test_classes_and_numbers_are_learned() -> None:
    y = SIZES > 6
    assert classifier(epochs=20, lr=0.01).fit(MOLECULES, y).score(MOLECULES, y) > 0.9
    assert regressor(epochs=30, lr=0.01).fit(MOLECULES, SIZES).score(MOLECULES, SIZES) > 0.8


# training


def test_a_run_with_the_defaults_trains_the_same_network(tmp_path: Path) -> None:
    model = PathRegressor(epochs=2, random_state=3).fit(MOLECULES, SIZES)
    config = model.model_.config
    (tmp_path / "data.csv").write_text("\n".join(["smiles,y", *map("{},{}".format, MOLECULES, SIZES)]))
    task = load_data(tmp_path / "data.csv", targets="y", descriptors="standard")
    defaults = RunConfig.from_dict({"data": "X", "descriptors": "standard", **default_options(task)})
    differences = {name for name, value in defaults.to_dict().items() if config.to_dict()[name] != value}
    assert differences == {"epochs", "seed", "options"}
    assert config.options == {**defaults.options, "dropout": 0.0}
    part = deal(task.groups, (0.9, 0.1), seed=config.seed)
    split = Split((part == 0).nonzero().flatten(), (part == 1).nonzero().flatten(), part[:0])
    chosen = replace(defaults, data=str(tmp_path / "data.csv"), epochs=2, seed=config.seed)
    result = run(chosen, tmp_path / "run", task=replace(task, splits=(split,)))
    assert (result["best_epoch"], result["val_score"]) == (model.model_.epoch, model.model_.val_score)
    found = Predictor(tmp_path / "run")(MOLECULES)["predicted_y"]
    np.testing.assert_allclose(found, model.predict(MOLECULES), atol=1e-6)


def test_random_state_is_what_changes_a_fit() -> None:
    torch.manual_seed(5)
    before = torch.random.get_rng_state()
    a, b, c = (regressor(random_state=seed).fit(MOLECULES, SIZES).predict(MOLECULES) for seed in (0, 0, 1))
    assert torch.equal(torch.random.get_rng_state(), before)
    np.testing.assert_array_equal(a, b)
    assert not np.allclose(a, c)
    one, two = (regressor(random_state=None).fit(MOLECULES, SIZES).predict(MOLECULES) for _ in range(2))
    assert not np.allclose(one, two)


@pytest.mark.parametrize("keep", ["best", "last"])
def test_the_best_or_the_last_epoch_is_kept(keep: str) -> None:
    model = regressor(epochs=6, lr=0.05, settings={"keep": keep}).fit(MOLECULES, SIZES)
    assert [epoch.epoch for epoch in model.history_] == list(range(1, 7))
    best = min(model.history_, key=lambda epoch: (epoch.val_score, -epoch.epoch))
    best = best if keep == "best" else model.history_[-1]
    assert (model.model_.epoch, model.model_.val_score) == (best.epoch, best.val_score)


def test_other_settings_reach_the_run_and_the_model() -> None:
    settings = {"weight_decay": 0.1, "model": "gin", "options": {"num_layers": 1}}
    model = regressor(settings=settings, descriptors="morgan").fit(MOLECULES, SIZES)
    assert (model.model_.config.weight_decay, model.model_.model.config.num_layers) == (0.1, 1)
    assert model.model_.model.config.graph_channels == 2048
    assert model.predict(["CCO", "CCO.Cl"]).shape == (2,)
    assert settings == {"weight_decay": 0.1, "model": "gin", "options": {"num_layers": 1}}


def test_molecules_are_cleaned_as_in_training() -> None:
    one, two, plain = regressor(clean="salts").fit(MOLECULES, SIZES).predict(["CC[NH3+].[Cl-]", "CCN", "CCO"])
    assert one == pytest.approx(two, abs=1e-5)
    assert one != pytest.approx(plain, abs=1e-5)


def test_training_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    pickle.dumps(regressor().fit(MOLECULES, SIZES))
    assert not list(tmp_path.iterdir())


# files and pickles, and the tools of scikit-learn


@pytest.mark.parametrize("make", [regressor, classifier])
def test_a_pickle_predicts_the_same_and_holds_no_torch(make: Any) -> None:
    y = SIZES if make is regressor else np.where(SIZES > 5, "long", "short")
    model = make().fit(MOLECULES, y)
    content = pickle.dumps(model)
    modules: set[str] = set()

    class Unpickler(pickle.Unpickler):
        def find_class(self, module: str, name: str) -> Any:
            modules.add(module.split(".")[0])
            return super().find_class(module, name)

    again = Unpickler(io.BytesIO(content)).load()
    assert "pathnn" in modules
    assert "torch" not in modules
    np.testing.assert_array_equal(again.predict(MOLECULES), model.predict(MOLECULES))
    assert again.get_params() == model.get_params()
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(again)).predict(MOLECULES), model.predict(MOLECULES))


def test_a_saved_model_is_one_of_pathnn(tmp_path: Path) -> None:
    model = classifier().fit(MOLECULES, [str(i % 3) for i in range(60)])
    model.save(tmp_path / "model.safetensors")
    columns = Predictor(tmp_path / "model.safetensors")(MOLECULES)
    assert columns["predicted_class"] == model.predict(MOLECULES).tolist()
    np.testing.assert_allclose(columns["probability_1"], model.predict_proba(MOLECULES)[:, 1], atol=1e-6)
    assert embed(tmp_path / "model.safetensors", MOLECULES).shape == (60, 8)


def test_a_saved_model_knows_the_names_of_targets_in_pandas(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas", reason="needs pandas (extra dev)")
    table = pandas.DataFrame({"smiles": MOLECULES, "size": SIZES, "twice": 2 * SIZES})
    for names, targets in ((["size"], table["size"]), (["size", "twice"], table[["size", "twice"]])):
        regressor().fit(table["smiles"], targets).save(tmp_path / "model.safetensors")
        columns = Predictor(tmp_path / "model.safetensors")(["CCO"])
        assert list(columns) == [*(f"predicted_{name}" for name in names), "error"]


def test_folds_and_searches_work() -> None:
    assert cross_val_score(regressor(), MOLECULES, SIZES, cv=3).shape == (3,)
    assert cross_val_score(classifier(), MOLECULES, np.arange(60) % 2, cv=2, scoring="roc_auc").shape == (2,)
    grid = {"k": np.array([1, 2]), "hidden_channels": [4, 8]}
    search = GridSearchCV(regressor(), grid, cv=2).fit(MOLECULES, SIZES)
    assert search.best_estimator_.predict(MOLECULES[:2]).shape == (2,)
    assert clone(search.best_estimator_).get_params() == search.best_estimator_.get_params()


class ToMolecules(TransformerMixin, BaseEstimator):
    """SMILES to RDKit molecules in one column, as scikit-mol does it."""

    def fit(self, X: Any, y: Any = None) -> ToMolecules:
        self.fitted_ = True
        return self

    def transform(self, X: Any) -> Any:
        return np.array([[Chem.MolFromSmiles(text)] for text in X])


def test_the_last_step_of_a_pipeline_reads_molecules() -> None:
    pipeline = make_pipeline(ToMolecules(), regressor()).fit(MOLECULES, SIZES)
    np.testing.assert_array_equal(pipeline.predict(MOLECULES), regressor().fit(MOLECULES, SIZES).predict(MOLECULES))
    assert cross_val_score(clone(pipeline), MOLECULES, SIZES, cv=2).shape == (2,)
    assert pipeline.set_params(pathregressor__k=1)[-1].k == 1


def test_a_pipeline_of_scikit_mol() -> None:
    conversions = pytest.importorskip("scikit_mol.conversions", reason="scikit-mol is no dependency")
    pipeline = make_pipeline(conversions.SmilesToMolTransformer(), regressor()).fit(MOLECULES, SIZES)
    np.testing.assert_array_equal(pipeline.predict(MOLECULES), regressor().fit(MOLECULES, SIZES).predict(MOLECULES))
    pipeline[0].set_params(safe_inference_mode=True)
    with pytest.raises(ValueError, match=r"X\[1\]: it is InvalidMol.*Invalid SMILES"):
        pipeline.predict(["CC", "C("])


def test_a_pipeline_of_molpipeline() -> None:
    molpipeline = pytest.importorskip("molpipeline", reason="molpipeline is no dependency")
    read = pytest.importorskip("molpipeline.any2mol").SmilesToMol()
    valid = molpipeline.ErrorFilter(filter_everything=True)
    back = molpipeline.PostPredictionWrapper(molpipeline.FilterReinserter.from_error_filter(valid, np.nan))
    steps = [("read", read), ("valid", valid), ("model", regressor()), ("back", back)]
    pipeline = molpipeline.Pipeline(steps).fit([*MOLECULES, "C("], [*SIZES, 0])
    expected = regressor().fit(MOLECULES, SIZES).predict(MOLECULES)
    np.testing.assert_array_equal(pipeline.predict([*MOLECULES, "C("]), [*expected, np.nan])


def test_without_scikit_learn_the_extra_is_named() -> None:
    code = "import sys; sys.modules['sklearn'] = None; from pathnn import PathRegressor"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "scikit-learn, which is not installed: pip install 'pathnn[chem]'" in result.stderr


def test_the_code_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (Path(__file__).resolve().parents[1] / "docs" / "sklearn.md").read_text()
    rows = [f"{text},{-len(text) / 2}" for text in MOLECULES]
    (tmp_path / "molecules.csv").write_text("\n".join(["smiles,logS", *rows]) + "\n")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    others = [name for name in ("scikit_mol", "molpipeline") if find_spec(name) is None]  # no dependencies
    for block in re.findall(r"```python\n(.*?)```", page, re.S):
        if not any(name in block for name in others):
            exec(block, names)
    assert names["X"].shape == (60, 64)
    assert names["atoms"].shape == (3, 64)
    assert names["search"].best_params_["k"] in (2, 3)
