"""Write a report of a run as one page: how good it is, next to simpler models, and where it is wrong."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
import torch

from pathnn.data.fingerprints import count_copies
from pathnn.data.metrics import confusion
from pathnn.data.task import Split, Task
from pathnn.evaluation import figures
from pathnn.evaluation.baselines import SETTINGS, TRIVIAL, trivial_predictions
from pathnn.evaluation.predictions import LEAST, Predictions, by_target, interval, paired_difference
from pathnn.inference.intervals import Coverage
from pathnn.inference.similarity import TrainingMolecules, nearest
from pathnn.plots.page import svg
from pathnn.provenance import versions
from pathnn.training.ensemble import Ensemble
from pathnn.training.run_folder import EnsembleFolder, RunFolder, write_file
from pathnn.training.setup import calibration_part, choose_split

OWN, UNDEFINED = "this model", "—"

FEW = f"Fewer than {LEAST} molecules are too few for intervals: other molecules could change each score and comparison."

WORST = 10
"""How many molecules to show."""

MOST_TARGETS = 6
"""Of several targets, so many have plots."""

CALIBRATED = "Calibration: on the line, probabilities are right"

SHOWN = (0.5, 0.8, 0.9, 0.95)
"""The levels of intervals in the table; the plot has more."""

MOST_CLASSES = 20
"""A confusion matrix of more classes is left out."""


def write_report(
    folder: Path,
    task: Task,
    ensemble: Ensemble,
    splits: Sequence[Split],
    found: Predictions,
    baselines: Mapping[str, Predictions],
    coverage: Sequence[Coverage] | None,
) -> None:
    """Write `report.html` into a folder of a run; `found` has the predictions for the test parts of `splits`."""
    trivial = trivial_predictions(task, splits, signature=ensemble.signature)
    target = ", ".join(task.classes) if task.target != "class" else ", ".join(ensemble.config.target or ("class",))
    parts = {
        "title": escape(f"{target} of {task.name}"),
        "verdict": verdict(found, trivial, baselines),
        "scores": _scores(found),
        "models": _models(found, {**baselines, _trivial(found): trivial}),
        "intervals": _intervals(ensemble, found, coverage),
        "worst": _worst(task, ensemble, splits, found),
        "facts": _facts(folder, task, ensemble, found),
    }
    try:
        parts |= {"plots": _plots(found), "curves": _curves(folder, ensemble), "missing": ""}
        parts["intervals"] += _reliability(found, coverage or ())
    except ImportError:
        note = "This report has no plots, which need matplotlib: pip install 'pathnn[plot]'."
        parts |= {"plots": _confusion(found), "curves": "", "missing": f'<p class="soft">{note}</p>'}
    template = files("pathnn.evaluation").joinpath("templates/report.html").read_text()
    write_file(folder / "report.html", Template(template).substitute(parts).encode())


def verdict(
    found: Predictions, trivial: Predictions, baselines: Mapping[str, Predictions], target: str | None = None
) -> str:
    """Return the first sentences: the best model, the score of this one, and that of a trivial prediction."""
    if each := by_target({**baselines, TRIVIAL: trivial, OWN: found}):
        lost = [escape(name) for name, models in each.items() if _best_first(models)[0] != OWN]
        names = f": {', '.join(lost)}" if lost else ""
        first = f"<strong>A simpler model is as good or better for {len(lost)} of {len(each)} targets{names}.</strong>"
        shown_targets = [*each.items()][:MOST_TARGETS]
        texts = [verdict(one.pop(OWN), one.pop(TRIVIAL), one, name) for name, one in shown_targets]
        return f'<p class="verdict">{first}</p>{"".join(texts)}'
    metric, info = found.metric, found.metrics[found.metric]
    score, low, high = found.score(metric), *interval(found.resampled(metric))
    which = "molecules that each fold held out" if found.folds else f"test molecule{'s' if len(found.rows) > 1 else ''}"

    def shown(value: float) -> str:
        return _number(value) + (" %" if info.scale == 100 else "")

    within = f" (95 % interval {shown(low)} to {shown(high)})" if low <= high else ""
    own = (
        f"On {len(found.rows):,} {which}, the {info.name} of this model is {shown(score)}{within}; that of predicting "
        f"the {_trivial(found)} is {shown(trivial.score(metric))}."
    )
    sentences = [] if target is None else [f"{escape(target)}:"]
    if _best_first({TRIVIAL: trivial, OWN: found})[0] != OWN:
        sentences.append(f"<strong>This model is no better than predicting the {_trivial(found)}.</strong>")
    for best in _best_first(baselines)[:1]:
        apart, other = paired_difference(found, baselines[best], metric), shown(baselines[best].score(metric))
        close = apart.low <= 0 <= apart.high
        chance = " The difference is within what another choice of test molecules could change." if close else ""
        if _best_first({OWN: found, best: baselines[best]})[0] == best:
            first = f"A simpler model is better: the {info.name} of {_words(best)} is {other}."
            sentences.append(f"<strong>{first}</strong>{chance}")
        else:
            own += f" The best simpler model, {_words(best)}, is not better: {other}.{chance}"
    few = [FEW] if len(found.rows) < LEAST else []
    return f'<p class="verdict">{" ".join([*sentences, own, *few])}</p>'


def _best_first(models: Mapping[str, Predictions]) -> list[str]:
    """Return the names of models, the best score first and undefined scores last; equal ones in their order."""

    def rank(name: str) -> float:
        score, info = models[name].score(models[name].metric), models[name].metrics[models[name].metric]
        return -math.inf if math.isnan(score) else score if info.maximize else -score

    return sorted(models, key=rank, reverse=True)


def _trivial(found: Predictions) -> str:
    return TRIVIAL if found.signature.target == "regression" else "frequencies of the training targets"


def _words(baseline: str) -> str:
    """Return the name of a baseline in a sentence: "a random forest on Morgan fingerprints"."""
    model, _, kind = baseline.partition(", ")
    article = "a " if model == "random forest" else ""
    return f"{article}{model} on {'Morgan fingerprints' if kind == 'Morgan' else 'RDKit descriptors'}"


def _number(value: float) -> str:
    return UNDEFINED if math.isnan(value) else f"{value:.4g}"


def _table(header: Sequence[str], rows: Iterable[Sequence[str]], style: str = "") -> str:
    """Return a table; the entries are HTML."""
    head = "".join(f"<th>{entry}</th>" for entry in header)
    body = "".join(f"<tr>{''.join(f'<td>{entry}</td>' for entry in row)}</tr>" for row in rows)
    return f'<div class="wide"><table{style}><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _scores(found: Predictions) -> str:
    titles = [f"{escape(info.name)}{' (%)' if info.scale == 100 else ''}" for info in found.metrics.values()]
    if found.targets:
        each = {**found.each_target, "mean of the targets": found}
        rows = [(escape(name), f"{len(one.rows):,}", *map(_number, one.scores.values())) for name, one in each.items()]
        return _table(("target", "molecules", *titles), rows)
    rows = []
    for title, (name, info) in zip(titles, found.metrics.items(), strict=True):
        low, high = interval(found.resampled(name))
        within = f"{_number(low)} to {_number(high)}" if low <= high else UNDEFINED
        direction = f"{'larger' if info.maximize else 'smaller'} is better"
        rows.append((title, _number(found.score(name)), within, direction))
    note = FEW if len(found.rows) < LEAST else "The intervals are over 1000 bootstrap samples of the molecules."
    return _table(("metric", "this model", "95 % interval", ""), rows) + f'<p class="soft">{note}</p>'


def _models(found: Predictions, others: Mapping[str, Predictions]) -> str:
    """Return a table of this model and of the others, the best first; of several targets, one for each."""
    every, tables = {OWN: found, **others}, ""
    for target, models in [*by_target(every).items()][:MOST_TARGETS] or [("", every)]:
        mine, metric = models.pop(OWN), found.metric
        rows = [(f"<strong>{OWN}</strong>", f"<strong>{_number(mine.score(metric))}</strong>", "", "")]
        for name in _best_first(models):
            apart = paired_difference(mine, models[name], metric)
            known = apart.low <= apart.high
            by = _number(apart.value) + (f" ({_number(apart.low)} to {_number(apart.high)})" if known else "")
            answer = UNDEFINED if not known else "yes" if apart.distinguishable else "no"
            rows.append((escape(name), _number(models[name].score(metric)), by, answer))
        header = ("model", found.metrics[metric].name, "difference to this model (95 %)", "distinguishable")
        tables += (f"<h3>{escape(target)}</h3>" if target else "") + _table(header, rows)
    more = "" if len(others) > 1 else " Train with --baselines to see random forests and gradient boosting here."
    note = f"All models predict the same molecules; intervals are paired.{more}"
    return f'<h2>Next to simpler models</h2>{tables}<p class="soft">{note}</p>'


def _figure(figure: Any, name: str, caption: str) -> str:
    drawn = svg(figure, name, figures.STYLE, transparent=True)
    return f"<figure>{drawn}<figcaption>{escape(caption)}</figcaption></figure>"


def _plots(found: Predictions) -> str:
    """Return parity and residual plots; or ROC, precision-recall and calibration curves, and a confusion matrix."""
    kind, drawn = found.signature.target, []
    each = [*found.each_target.items()][:MOST_TARGETS]
    pairs = {name: (one.y[:, 0].double().numpy(), one.out[:, 0].numpy()) for name, one in each}
    if kind == "class":
        best = found.out.softmax(dim=1).max(dim=1)
        right = (best.indices == found.y).double().numpy()
        curve = {"": figures.calibration_curve(right, best.values.numpy())}
        labels = "probability of the predicted class", "share of right predictions"
        drawn.append(_figure(figures.draw_curves(curve, *labels, marker="o"), "calibration", CALIBRATED))
    elif kind == "regression":
        for name, (y, out) in pairs.items():
            if y.size:
                parity = figures.scatter(y, out, f"target {name}", f"predicted {name}", diagonal=True)
                residuals = figures.scatter(out, out - y, f"predicted {name}", "prediction − target")
                drawn.append(_figure(parity, f"parity {name}", "Predictions over targets"))
                drawn.append(_figure(residuals, f"residuals {name}", "Errors over predictions"))
    else:
        curves = {name: pair for name, pair in pairs.items() if 0 < pair[0].sum() < pair[0].size}
        if curves:
            rates = {name: figures.roc_curve(*pair) for name, pair in curves.items()}
            roc = figures.draw_curves(rates, "false positive rate", "true positive rate")
            drawn.append(_figure(roc, "roc", "ROC curve"))
            drawn.append(_figure(figures.draw_precision_recall(curves), "pr", "Precision over recall"))
            shares = {name: figures.calibration_curve(y, 1 / (1 + np.exp(-out))) for name, (y, out) in curves.items()}
            drawn.append(_figure(figures.draw_curves(shares, "probability", "share of positives", marker="o"),
                                 "calibration", CALIBRATED))  # fmt: skip
    return f'<h2>Predictions</h2><div class="plots">{"".join(drawn)}</div>{_confusion(found)}'


def _confusion(found: Predictions) -> str:
    """Return the confusion matrix of classes, or of a label at a probability of 0.5."""
    kind, names = found.signature.target, [*found.signature.classes]
    if kind not in ("class", "binary") or len(names) > MOST_CLASSES:
        return ""
    if kind == "binary":
        counts, names = confusion(found.out[:, 0] > 0, found.y.flatten(), 2), ["0", "1"]
    else:
        counts = confusion(found.out.argmax(dim=1), found.y, found.out.size(1))
        names = names or [str(i) for i in range(found.out.size(1))]
    rows = [
        (f"<strong>{escape(name)}</strong>", *(f"{int(n):,}" for n in row))
        for name, row in zip(names, counts.tolist(), strict=True)
    ]
    title = "<h2>Confusion matrix</h2><p class='soft'>Rows are targets, columns are predictions.</p>"
    return title + _table(("", *map(escape, names)), rows, ' class="confusion"')


def _intervals(ensemble: Ensemble, found: Predictions, coverage: Sequence[Coverage] | None) -> str:
    """Return a table of the coverage and the width of intervals, or of the size of sets."""
    if coverage is None:
        note = (
            "<code>pathnn predict --interval 0.9</code> adds them. Their coverage is not measured here, since no test "
            "part is outside of all folds: <code>--split-by COLUMN</code> names one."
        )
        return f'<h2>Intervals</h2><p class="soft">{note}</p>' if ensemble.config.folds is not None else ""
    numbers = found.signature.target == "regression"
    names = _target_names(found)[:MOST_TARGETS]
    header = ["level", *(f"{name} {word}" for name in names for word in ("inside", "width" if numbers else "size"))]
    rows = []
    for level, share, width in (one for one in coverage if one.level in SHOWN):
        each = [text for i in range(len(names)) for text in (f"{100 * share[i]:.1f} %", _number(width[i]))]
        rows.append((f"{100 * level:.0f} %", *each))
    what = "intervals, and their mean width" if numbers else "sets of classes, and the mean number of classes in a set"
    note = (
        f"The share of {len(found.rows):,} test molecules inside {what} (<code>predict --interval LEVEL</code>). The "
        "share is close to the level if the test molecules are like those that the intervals were calibrated with."
    )
    title = "Intervals" if numbers else "Sets of classes"
    return f'<h2>{title}</h2>{_table([*map(escape, header)], rows)}<p class="soft">{note}</p>'


def _target_names(found: Predictions) -> list[str]:
    return [*found.each_target] or [""]


def _reliability(found: Predictions, coverage: Sequence[Coverage]) -> str:
    """Return a plot of the share of targets inside intervals or sets over their level."""
    if not coverage:
        return ""
    level, share, _ = (np.array(values) for values in zip(*coverage, strict=True))
    curves = {name: (level, share[:, i]) for i, name in enumerate(_target_names(found)[:MOST_TARGETS])}
    figure = figures.draw_curves(curves, "level", "share of targets inside", marker="o")
    return f'<div class="plots">{_figure(figure, "coverage", "Reliability: on the line, levels are right")}</div>'


def _curves(folder: Path, ensemble: Ensemble) -> str:
    several = EnsembleFolder.open(folder)
    members = [several.member(number) for number in several.numbers] or [RunFolder(folder)]
    epochs = [member.read_epochs() for member in members]
    loss = _figure(figures.learning_curves(epochs, "loss", "loss"), "loss", "Loss")
    name = ensemble.signature.metric_name
    score = _figure(figures.learning_curves(epochs, "val_score", f"validation {name}"), "score", f"Validation {name}")
    return f'<h2>Learning curves</h2><div class="plots">{loss}{score}</div>'


def errors(found: Predictions) -> np.ndarray[Any, Any]:
    """Return how wrong each prediction is: from 0, comparable between targets."""
    kind = found.signature.target
    if kind == "class":
        return 1 - found.out.softmax(dim=1).gather(1, found.y[:, None])[:, 0].numpy()
    y = found.y.reshape(found.out.shape).double()
    if kind == "regression":
        spread = torch.tensor([column[~column.isnan()].std(correction=0) for column in y.T]).double()
        each = (found.out - y).abs() / spread.where(spread > 0, 1.0)
    else:
        each = (found.out.sigmoid() - y).abs()
    return np.nan_to_num(each.nanmean(dim=1).numpy())


def _worst(task: Task, ensemble: Ensemble, splits: Sequence[Split], found: Predictions) -> str:
    order = np.argsort(-errors(found), kind="stable")[:WORST].tolist()
    columns, targets = found.columns(), found.target_columns()
    names, clean, cards = task.graphs.names or (), ensemble.config.clean, []

    @cache
    def training(fold: int) -> TrainingMolecules:
        return TrainingMolecules.of([names[j] for j in splits[fold].train.tolist()], clean)

    for i in order:
        ((similarity, other),) = nearest([found.smiles[i]], training(found.folds[i] if found.folds else 0), clean)
        wanted = "; ".join(f"{escape(name)} {_value(values[i])}" for name, values in targets.items())
        got = "; ".join(f"{escape(name)} {_value(values[i])}" for name, values in columns.items())
        cards.append(
            f"<article><div>Row {found.rows[i]}: {wanted}<br>{got}</div><div class='pair'>"
            f"<div>{_picture(found.smiles[i])}</div><div>{_picture(other)}"
            f"<div class='soft'>nearest training molecule, similarity {similarity:.2f}</div></div></div></article>"
        )
    return "".join(cards)


def _value(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else escape(str(value)) or "unknown"


def _picture(smiles: str) -> str:
    from pathnn.explain.pictures import Molecule

    drawn = Molecule(smiles).draw({}, {}, numbers=False)
    return f"<div class='molecule'>{drawn}</div><div class='smiles'>{escape(smiles)}</div>"


def _facts(folder: Path, task: Task, ensemble: Ensemble, found: Predictions) -> str:
    config, result = ensemble.config, RunFolder(folder).read_result() or {}
    split, several = choose_split(task, config), len(ensemble.members)
    kernels = [member.model.kernel for member in ensemble.members]
    skipped = f", {len(task.skipped):,} of them cannot be read, the first is {task.skipped[0]}" if task.skipped else ""
    known = {
        "data": config.data,
        "rows": f"{len(task.graphs) + len(task.skipped):,}{skipped}",
        "copies of molecules": _copies(task),
        "targets": f"{', '.join(task.classes) or 'one'} ({task.target})",
        "split": _split_words(task, ensemble, split),
        "scores of the folds": _fold_scores(result) if config.folds and several > 1 else "",
        "model": f"{config.model}, {result.get('parameters', 0):,} parameters"
        + (f"; {several} networks, {'one per fold' if config.folds else 'one per seed'}" if several > 1 else ""),
        "share of the kernel": ", ".join(f"{share:.2f}" for kernel in kernels if kernel for share in kernel.share),
        "epochs": ", ".join(str(member.epoch) for member in ensemble.members) + f" of at most {config.epochs}",
        "training time": f"{result.get('seconds', 0.0):.0f} s on {result.get('device', 'an unknown device')}",
        "written": str(result.get("time", "")),
        "versions": ", ".join(f"{name} {version}" for name, version in versions().items() if version),
    }
    terms = "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in known.items() if text)
    fold = {} if config.fold == config.folds else {"fold": config.fold}  # all folds together have no number
    chosen = {name: value for name, value in config.to_dict().items() if value is not None and name != "fold"} | fold
    options = escape("\n".join(f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in chosen.items()))
    more = f"<details><summary>All options</summary><pre class='wide'>{options}</pre></details>"
    if (folder / "baselines.json").exists():
        settings = escape(json.dumps(SETTINGS, indent=1))
        title = "Settings of the simpler models"
        more += f"<details><summary>{title}</summary><pre class='wide'>{settings}</pre></details>"
    return f"<dl>{terms}</dl>{more}"


def _fold_scores(result: Mapping[str, Any]) -> str:
    each = [math.nan if score is None else score for score in result["test_each"]]
    mean, std = result["test_mean"], result["test_std"]
    total = "" if mean is None else f"; mean {_number(mean)}, standard deviation {_number(std)}"
    means = " (mean of the targets)" if "targets" in result else ""
    return f"{result['metric']}{means} {', '.join(map(_number, each))}{total}"


def _copies(task: Task) -> str:
    copies = count_copies(task)
    if not copies.molecules:
        return "" if task.groups is None else "none"
    conflicts = f", {copies.conflicts:,} of them with different targets" if copies.conflicts else ""
    return f"{copies.molecules:,} molecules in {copies.rows:,} other rows{conflicts}"


def _split_words(task: Task, ensemble: Ensemble, split: Any) -> str:
    config = ensemble.config
    by = config.splits or config.split_by
    how = "at random" if by in (None, "random") else f"by {by}"
    seed = f" (seed {config.split_seed})" if config.split_seed is not None else ""
    if config.folds is not None and config.fold == config.folds:
        test = f", and {split.test.numel():,} test rows in no fold" if split.test.numel() else ""
        return f"{config.folds} folds of {split.train.numel():,} rows {how}{seed}{test}"
    sizes = f"{split.train.numel():,} training, {split.val.numel():,} validation, {split.test.numel():,} test rows"
    aside = "" if config.calibration is None else f", {calibration_part(task, config).numel():,} calibration rows"
    return f"{sizes}{aside}, {how}{seed}"
