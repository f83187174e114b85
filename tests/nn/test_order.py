"""Rows are sorted by where they are summed, and matrices are cut into blocks."""

from __future__ import annotations

import torch

from pathnn.nn.backends.base import LevelTokens
from pathnn.nn.backends.triton.kernels.blocks import column_block, cover, parts_of, power_above
from pathnn.nn.backends.triton.order import Order, child_starts, flat, order_by_vertex, sort_keys, split


def test_equal_keys_stay_in_their_order():
    order, start, _ = sort_keys(torch.tensor([2, 0, 2], dtype=torch.int32), 3)
    assert (order.tolist(), start.tolist(), start.dtype) == ([1, 0, 2], [0, 1, 1, 3], torch.int32)


def test_entries_of_the_last_level_come_first():
    vertex = [torch.tensor(v, dtype=torch.int32) for v in ([0, 1], [1, 0, 1])]
    order, start, _ = order_by_vertex([LevelTokens(None, v, None, None) for v in vertex], 2, 2)
    assert (order.tolist(), start.tolist()) == ([3, 0, 2, 4, 1], [0, 1, 2, 4, 5])


def test_children_of_each_parent():
    level = LevelTokens(torch.tensor([0, 0, 2]), torch.zeros(3), None, None)
    assert child_starts(level, 3).tolist() == [0, 2, 2, 3]


def test_parts_of_places_have_about_the_same_size():
    assert split(Order(torch.arange(7), torch.tensor([0, 5, 5, 7])), 2).start.tolist() == [0, 3, 5, 5, 5, 6, 7]


def test_contiguous_levels_are_a_view():
    both = torch.arange(5)
    joined = flat([both[:2], None, both[2:]])
    assert joined is not None
    assert joined.data_ptr() == both.data_ptr()
    swapped = flat([both[2:], both[:2]])
    assert swapped is not None
    assert swapped.tolist() == [2, 3, 4, 0, 1]
    assert flat([None]) is None


def test_blocks():
    assert [column_block(width) for width in (64, 140, 122, 560)] == [64, 32, 128, 64]
    assert cover(65, 32) == 3
    assert [parts_of(rows, 512, blocks=8, programs=512, least=16, most=128) for rows in (100, 10_000, 100_000)] == [
        1,
        19,
        64,
    ]
    assert (power_above(5), power_above(8)) == (8, 8)
