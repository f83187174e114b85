"""Cut matrices into blocks for Triton: powers of two."""

from __future__ import annotations


def column_block(width: int, largest: int = 128) -> int:
    """Return the block, a power of two from 16 to `largest`, with the fewest idle lanes; the larger of equals.

    >>> column_block(64), column_block(140), column_block(122), column_block(560)
    (64, 32, 128, 64)
    """
    blocks = [block for block in (16, 32, 64, 128) if block <= largest]
    return min(blocks[1:] if width > 16 else blocks, key=lambda block: (cover(width, block) * block, -block))


def cover(length: int, block: int) -> int:
    """Return how many blocks cover a length.

    >>> cover(65, 32)
    3
    """
    return -(-length // block)


def parts_of(rows: int, each: int, *, blocks: int, programs: int, least: int, most: int) -> int:
    """Return the number of parts of a sum over rows, if a part is the work of `blocks` programs.

    There are about `programs` programs in all, `least` to `most` parts, and at least `each` rows in a part.

    >>> [parts_of(rows, 512, blocks=8, programs=512, least=16, most=128) for rows in (100, 10_000, 100_000)]
    [1, 19, 64]
    """
    wanted = min(max(programs // max(blocks, 1), least), most)
    return max(1, min(wanted, rows // each))


def power_above(number: int) -> int:
    """Return the smallest power of two that is at least `number`, which is at least 1.

    >>> power_above(5), power_above(8)
    (8, 8)
    """
    return 1 << (number - 1).bit_length()
