"""Errors of a run: each says what is wrong, what was expected and how to fix it."""

from __future__ import annotations


class RunError(ValueError):
    """A run that cannot begin or continue."""


class RunStoppedError(RunError):
    """A run that was stopped after an epoch; its state is saved, and it can be resumed."""


class NotFiniteError(RunError):
    """NaN or infinity in the features, the targets or the loss."""


class MismatchError(RunError):
    """Data that does not match the model: another kind or width of features or targets."""


class RunFolderError(RunError):
    """A run folder that exists already, is another folder, or cannot be written."""


class CheckpointError(RunFolderError):
    """A file of a run folder that is damaged, or of another version."""
