"""Arithmetic for fingerprints: the field of integers modulo 2^61 - 1, and a mixer that turns keys into its elements.

A multiset of sequences is a polynomial: one variable per (position, token), one monomial per sequence, its coefficient
its number of occurrences. Evaluated at a random point of a field of p elements, two different polynomials of degree
d agree with probability at most d / p (Schwartz and Zippel). So the sum over all paths of the product of random
elements, one for each token, is a fingerprint of the multiset. Unlike a sum of hashes, it can be factored: the last
steps of all paths with a common beginning take one addition.
"""

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

PRIME = np.uint64(2**61 - 1)
_BITS, _REST = np.uint64(61), np.uint64(3)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31 = np.uint64(30), np.uint64(27), np.uint64(31)


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def _mul_high(typingctx, a, b):
    """Return the upper 64 bits of the product of two uint64, for which numba has no function."""

    def codegen(context, builder, signature, args):
        wide = ir.IntType(128)
        product = builder.mul(builder.zext(args[0], wide), builder.zext(args[1], wide))
        return builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), ir.IntType(64))

    return types.uint64(types.uint64, types.uint64), codegen


@njit(cache=True, nogil=True, inline="always")
def multiply(a, b):
    """Return the product of two elements."""
    low = a * b
    folded = (low & PRIME) + ((low >> _BITS) | (_mul_high(a, b) << _REST))
    return folded - PRIME if folded >= PRIME else folded


@njit(cache=True, nogil=True, inline="always")
def add(a, b):
    """Return the sum of two elements."""
    total = a + b
    return total - PRIME if total >= PRIME else total


@njit(cache=True, nogil=True, inline="always")
def subtract(a, b):
    """Return the difference of two elements."""
    return a - b if a >= b else a + PRIME - b


@njit(cache=True, nogil=True, inline="always")
def mix(x):
    """Map 64-bit integers one to one to values that look random (the finaliser of SplitMix64)."""
    x = x + _GOLDEN
    x = (x ^ (x >> _S30)) * _FIRST
    x = (x ^ (x >> _S27)) * _SECOND
    return x ^ (x >> _S31)


@njit(cache=True, nogil=True, inline="always")
def mix_pair(lane, kind, first, second, extra):
    """Return 64 random bits for a key of two 64-bit integers and two small ones; lanes 0 and 1 are independent."""
    x = mix(np.uint64(kind) * np.uint64(2) + np.uint64(lane))
    x = mix(x ^ first)
    x = mix(x + _GOLDEN * second)
    return mix(x ^ np.uint64(extra))


@njit(cache=True, nogil=True, inline="always")
def element(lane, kind, first, second, extra):
    """Return the bits of `mix_pair` as an element of the field."""
    x = mix_pair(lane, kind, first, second, extra) & PRIME
    return np.uint64(0) if x == PRIME else x
