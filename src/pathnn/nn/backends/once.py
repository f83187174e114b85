"""The trie engine has a backward pass of its own, which cannot be differentiated again."""

from __future__ import annotations

import torch


def check_once() -> None:
    """To be called in a backward pass: raise where `create_graph=True` asks for its graph. (`once_differentiable` would
    let some cases pass, wrongly.)"""
    if torch.is_grad_enabled():
        raise RuntimeError(
            "engine='trie' can be differentiated once, but create_graph=True asks for more: use engine='dense'."
        )
