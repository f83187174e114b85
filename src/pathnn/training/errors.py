"""What can go wrong in a run, as errors that say what came, what was expected and the way out."""

from __future__ import annotations


class RunError(ValueError):
    """A run that cannot begin or go on."""


class RunStoppedError(RunError):
    """A run that was asked to stop after an epoch; its state is saved, and it can go on."""


class NotFiniteError(RunError):
    """NaN or infinity in the features, the targets or the loss."""


class MismatchError(RunError):
    """Data that does not fit the model: another kind or width of features or targets."""


class RunFolderError(RunError):
    """A run folder that exists already, is not one, or cannot be written."""


class CheckpointError(RunFolderError):
    """A file of a run folder that is damaged, or of another version."""
