import numpy as np
import pytest
from hypothesis import given, strategies as st

from pathnn_reproduction.theory.small_graphs import name_multisets, name_pairs, name_rows
from theory_strategies import relaxed

small = st.integers(0, 4)
large = st.integers(0, 10**9)


def same_partition(first, second) -> bool:
    return len(set(first)) == len(set(second)) == len(set(zip(first, second, strict=True)))


def ints(values):
    return np.array(values, dtype=np.int64)


@given(st.lists(st.tuples(small | large, small | large)))
@relaxed
def test_pairs(pairs):
    first, second = (ints([pair[i] for pair in pairs]) for i in (0, 1))
    assert same_partition(name_pairs(first, second).tolist(), pairs)


@given(st.lists(st.tuples(small, large, small)))
@relaxed
def test_rows(rows):
    assert same_partition(name_rows(ints(rows).reshape(-1, 3)).tolist(), rows)


@given(st.lists(st.lists(small | large, max_size=5), max_size=12), st.randoms())
@relaxed
def test_multisets(multisets, random):
    members = [(owner, member) for owner, multiset in enumerate(multisets) for member in multiset]
    random.shuffle(members)
    owner, member = (ints([pair[i] for pair in members]) for i in (0, 1))
    names = name_multisets(owner, member, len(multisets))
    assert same_partition(names.tolist(), [tuple(sorted(multiset)) for multiset in multisets])


def test_too_large_names_are_refused():
    with pytest.raises(OverflowError, match="rename"):
        name_pairs(ints([2**40]), ints([2**40]))
