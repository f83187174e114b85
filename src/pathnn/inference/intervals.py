"""Conformal intervals and sets of classes: they hold the target of a new molecule with a chosen probability.

Split conformal with a calibration part, or CV+ with folds (Barber et al. 2021; for classes Romano et al. 2020).
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from pathnn.training.checkpoint import TaskSignature
from pathnn.training.ensemble import Ensemble
from pathnn.training.errors import CheckpointError
from pathnn.training.run_folder import write_file

Array = np.ndarray[Any, Any]

FILE, FORMAT = "intervals.json", "pathnn-intervals-1"

LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)  # the levels of a reliability diagram

LEAST_DEVIATION = 0.01
"""Added to the deviation of networks, in standard deviations of the target: they may agree and be wrong."""

AT_ONCE = 4_000_000  # how many numbers the bounds of some molecules are chosen from at once


class Coverage(NamedTuple):
    """The share of targets inside intervals or sets of a level, and their mean width or size, for each target."""

    level: float
    share: Array
    width: Array


@dataclass(frozen=True, eq=False)
class Calibration:
    """How wrong networks are for molecules that trained no network and chose no epoch and no option.

    `scores` is `[molecules, targets]`, NaN for an unknown target: 1 minus the probability of a class, or the absolute
    error of a number, in units of the deviation of the networks if there are several seeds. `folds` has the network
    that held out each molecule; it is empty for a calibration part.
    """

    signature: TaskSignature
    names: tuple[str, ...]
    scores: Array
    folds: Array
    networks: str

    @staticmethod
    def of(ensemble: Ensemble, outputs: Tensor, y: Tensor, folds: Sequence[int] = ()) -> Calibration:
        """Compare outputs `[networks, molecules, channels]` with targets; of folds, `networks` is 1: the fold's own."""
        signature, number = ensemble.signature, np.array(folds, dtype=np.int64)
        if signature.target == "regression":
            centres, deviation = _centres(outputs, signature, each=bool(folds))
            scores = np.abs(_columns(y) - centres[0]) / deviation
        else:
            scores = 1 - _of_target(_probabilities(outputs, signature, each=bool(folds))[0], _columns(y))
        return Calibration(signature, _names(ensemble, scores.shape[1]), scores, number, checksum(ensemble))

    def save(self, folder: Path) -> None:
        """Write `intervals.json` into the folder of the runs."""
        scores = [[None if math.isnan(score) else score for score in row] for row in self.scores.tolist()]
        document = {"format": FORMAT, "networks": self.networks, "targets": self.names}
        text = json.dumps({**document, "folds": self.folds.tolist(), "scores": scores})
        write_file(folder / FILE, f"{text}\n".encode())

    @staticmethod
    def load(folder: Path, ensemble: Ensemble) -> Calibration:
        """Read what `save` wrote for the networks of a folder."""
        path = folder / FILE
        if not path.exists():
            raise ValueError(
                f"{folder} has no {FILE}, which calibrates intervals: expected a folder that pathnn train wrote with "
                "--folds 5 or with --calibration 0.1. Train again with one of these options."
            )
        try:
            found = json.loads(path.read_bytes())
            if found["format"] != FORMAT:
                raise ValueError(f"its format is {found['format']!r}, expected {FORMAT!r}")
            names, folds = tuple(map(str, found["targets"])), np.array(found["folds"], dtype=np.int64)
            scores = np.array(found["scores"], dtype=np.float64).reshape(-1, len(names))
            if len(folds) not in (0, len(scores)) or not ((folds >= 0) & (folds < len(ensemble.members))).all():
                raise ValueError(f"{len(scores)} molecules, and folds of {len(folds)}")
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise CheckpointError(f"{path} cannot be read ({error}): restore it, or train again.") from error
        if found["networks"] != checksum(ensemble):
            raise CheckpointError(f"{path} is that of other networks: resume the training to write it (--resume).")
        return Calibration(ensemble.signature, names, scores, folds, found["networks"])

    def bounds(self, outputs: Tensor, level: float) -> tuple[Array, Array]:
        """Return the ends of intervals, `[molecules, targets]`; infinite with `too_few` calibration molecules."""
        centres, deviation = _centres(outputs, self.signature, each=bool(len(self.folds)))
        lower, upper = np.full(deviation.shape, -np.inf), np.full(deviation.shape, np.inf)
        for target in range(len(self.names)):
            scores, folds = self._known(target)
            rank = _rank(level, len(scores))
            if rank > len(scores):
                continue
            step = max(1, AT_ONCE // len(scores))
            for start in range(0, len(deviation), step):
                part = slice(start, start + step)
                centre, error = centres[folds, part, target].T, deviation[part, target, None] * scores
                upper[part, target] = np.partition(centre + error, rank - 1)[:, rank - 1]
                lower[part, target] = np.partition(centre - error, -rank)[:, -rank]
        return np.minimum(lower, upper), np.maximum(lower, upper)  # at low levels, folds that differ may cross

    def sets(self, outputs: Tensor, level: float) -> Array:
        """Return whether each class is in the set, `[molecules, targets, classes]`; a label has the classes 0 and 1."""
        probabilities = _probabilities(outputs, self.signature, each=bool(len(self.folds)))
        found = np.zeros(probabilities.shape[1:], dtype=np.int64)
        for target in range(len(self.names)):
            scores, folds = self._known(target)
            for fold in np.unique(folds):
                better = np.sort(scores[folds == fold])
                found[:, target] += np.searchsorted(better, 1 - probabilities[fold, :, target])
            found[:, target] -= _rank(level, len(scores))
        return found < 0

    def coverage(self, outputs: Tensor, y: Tensor) -> list[Coverage]:
        """Measure intervals or sets of all `LEVELS` on molecules with known targets."""
        known = _columns(y)
        found = []
        for level in LEVELS:
            if self.signature.target == "regression":
                lower, upper = self.bounds(outputs, level)
                inside, width = (lower <= known) & (known <= upper), upper - lower
            else:
                sets = self.sets(outputs, level)
                inside, width = _of_target(sets, known) == 1, sets.sum(axis=2)
            share = np.ma.masked_array(inside, np.isnan(known)).mean(axis=0)
            found.append(Coverage(level, np.ma.filled(share.astype(float), np.nan), width.mean(axis=0)))
        return found

    def too_few(self, level: float) -> dict[str, tuple[int, int]]:
        """Return the targets whose intervals are infinite: their calibration molecules, and how many they need."""
        least = math.ceil(round(level / (1 - level), 9))
        known = dict(zip(self.names, (~np.isnan(self.scores)).sum(axis=0).tolist(), strict=True))
        return {name: (number, least) for name, number in known.items() if number < least}

    def _known(self, target: int) -> tuple[Array, Array]:
        """Return the scores of the molecules with a known target, and their networks."""
        known = ~np.isnan(self.scores[:, target])
        folds = self.folds if len(self.folds) else np.zeros(len(self.scores), dtype=np.int64)
        return self.scores[known, target], folds[known]


def _rank(level: float, number: int) -> int:
    """Return which of the scores from small to large bounds a new one with a probability of `level`.

    >>> _rank(0.9, 99), _rank(0.9, 8)
    (90, 9)
    """
    return math.ceil(round(level * (number + 1), 9))


def _columns(y: Tensor) -> Array:
    """Return targets as `[molecules, targets]`."""
    return y.reshape(len(y), -1).double().cpu().numpy()


def _centres(outputs: Tensor, signature: TaskSignature, *, each: bool) -> tuple[Array, Array]:
    """Return predictions `[networks, molecules, targets]`, of each network or the mean, and the unit of errors."""
    values = signature.target_scale.decode(outputs).double().cpu().numpy()
    if each or len(values) == 1:
        return values, np.ones(values.shape[1:])
    least = LEAST_DEVIATION * np.array(signature.target_std or 1.0)
    return values.mean(axis=0, keepdims=True), values.std(axis=0, ddof=1) + least


def _probabilities(outputs: Tensor, signature: TaskSignature, *, each: bool) -> Array:
    """Return the probabilities of all classes, `[networks, molecules, targets, classes]`; see `_centres`."""
    if signature.target == "class":
        found = outputs.double().softmax(dim=2)[:, :, None]
    else:
        found = torch.stack([(-outputs).double().sigmoid(), outputs.double().sigmoid()], dim=3)
    return (found if each else found.mean(dim=0, keepdim=True)).cpu().numpy()


def _of_target(values: Array, y: Array) -> Array:
    """Return the value of the right class, `[molecules, targets]`; NaN where it is unknown."""
    right = np.nan_to_num(y).astype(np.int64)[..., None]
    return np.where(np.isnan(y), np.nan, np.take_along_axis(values, right, axis=2)[..., 0])


def _names(ensemble: Ensemble, targets: int) -> tuple[str, ...]:
    given = ensemble.config.target if ensemble.signature.target == "class" else ensemble.signature.classes
    plain = ("prediction",) if targets == 1 else tuple(map(str, range(targets)))
    return tuple(given) if given and len(given) == targets else plain


def checksum(ensemble: Ensemble) -> str:
    """Return a checksum of networks and of what they know about their task."""
    digest = hashlib.sha256()
    for one in ensemble.members:
        digest.update(repr(one.signature.to_dict()).encode())
        for name, tensor in one.model.state_dict().items():
            digest.update(name.encode() + tensor.cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()
