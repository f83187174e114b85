import networkx as nx
from hypothesis import given, strategies as st

from exact_theory import ColorTable, is_subtree
from pathnn.theory import Tree
from slow_trees import prune, tree_color
from theory_strategies import relaxed

labels = st.integers(0, 3)
trees = st.recursive(
    st.builds(Tree, labels),
    lambda children: st.builds(lambda v, c: Tree(v, tuple(c)), labels, st.lists(children, max_size=3)),
    max_leaves=9,
)


def to_networkx(tree: Tree) -> nx.Graph:
    graph = nx.Graph()
    graph.add_node(0)
    stack = [(tree, 0)]
    while stack:
        node, number = stack.pop()
        for child in node.children:
            stack.append((child, len(graph)))
            graph.add_edge(number, len(graph))
    return graph


def without_equal_siblings(tree: Tree) -> Tree:
    children = {child.vertex: without_equal_siblings(child) for child in tree.children}
    return Tree(tree.vertex, tuple(children.values()))


def mirrored(tree: Tree) -> Tree:
    return Tree(tree.vertex + 10, tuple(mirrored(child) for child in reversed(tree.children)))


@given(trees, trees)
@relaxed
def test_form_agrees_with_networkx(first, second):
    left, right = to_networkx(first), to_networkx(second)
    isomorphic = bool(nx.algorithms.isomorphism.rooted_tree_isomorphism(left, 0, right, 0)) or (
        len(left) == len(right) == 1
    )
    table = ColorTable()
    assert (first.form() == second.form()) == isomorphic
    assert (tree_color(first, table) == tree_color(second, table)) == isomorphic


@given(trees)
@relaxed
def test_form_ignores_order_and_labels(tree):
    assert tree.form() == mirrored(tree).form()


@given(trees, trees)
@relaxed
def test_marked_colors_are_finer_than_colors(first, second):
    table, marked = ColorTable(), ColorTable()
    if tree_color(first, marked, mark=int) == tree_color(second, marked, mark=int):
        assert tree_color(first, table) == tree_color(second, table)
        assert first.levels()[0] == second.levels()[0]
        assert [sorted(level) for level in first.levels()] == [sorted(level) for level in second.levels()]


@given(trees, trees)
@relaxed
def test_subtree_agrees_with_walks(small, large):
    small, large = without_equal_siblings(small), without_equal_siblings(large)
    assert is_subtree(small, large) == (set(small.walks()) <= set(large.walks()))


@given(trees)
@relaxed
def test_sizes_levels_walks_and_pruning(tree):
    levels = tree.levels()
    assert tree.size == sum(map(len, levels)) == len(to_networkx(tree)) == len(list(tree.walks()))
    assert tree.height == len(levels) - 1
    assert sorted(walk[-1] for walk in tree.walks()) == sorted(v for level in levels for v in level)
    for height in range(tree.height + 2):
        pruned = prune(tree, height)
        assert pruned.levels() == levels[: height + 1]
        assert is_subtree(*map(without_equal_siblings, (pruned, tree)))
