"""Cut matrices into blocks for Triton: powers of two."""

from __future__ import annotations


def column_block(width: int, largest: int = 128) -> int:
    """Return the block, a power of two from 16 to `largest`, with the fewest idle lanes; the larger of equals."""
    blocks = [block for block in (16, 32, 64, 128) if block <= largest]
    return min(blocks[1:] if width > 16 else blocks, key=lambda block: (cover(width, block) * block, -block))


def cover(length: int, block: int) -> int:
    """Return how many blocks cover a length."""
    return -(-length // block)


def parts_of(rows: int, each: int, *, blocks: int, programs: int, least: int, most: int) -> int:
    """Return the number of parts of a sum over rows, if a part is the work of `blocks` programs.

    There are about `programs` programs in all, `least` to `most` parts, and at least `each` rows in a part.
    """
    wanted = min(max(programs // max(blocks, 1), least), most)
    return max(1, min(wanted, rows // each))


def power_above(number: int) -> int:
    """Return the smallest power of two that is at least `number`, which is at least 1."""
    return 1 << (number - 1).bit_length()
