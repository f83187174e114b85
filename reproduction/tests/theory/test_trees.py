import networkx as nx
from hypothesis import given, strategies as st

from pathnn.theory import Tree
from pathnn_reproduction.theory.exact import ColorTable, is_subtree, tree_color
from slow_trees import prune
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


def mirrored(tree: Tree) -> Tree:
    return Tree(tree.vertex + 10, tuple(mirrored(child) for child in reversed(tree.children)))


def embeds_by_search(small: Tree, large: Tree, labelled: bool) -> bool:
    """Try every way to send children to different children."""
    if labelled and small.vertex != large.vertex:
        return False
    if not small.children:
        return True
    first, *rest = small.children
    return any(
        embeds_by_search(first, child, labelled)
        and embeds_by_search(
            Tree(small.vertex, tuple(rest)),
            Tree(large.vertex, large.children[:i] + large.children[i + 1 :]),
            labelled,
        )
        for i, child in enumerate(large.children)
    )


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


@given(trees, trees, st.booleans())
@relaxed
def test_subtree_agrees_with_exhaustive_search(small, large, labelled):
    assert is_subtree(small, large, labelled=labelled) == embeds_by_search(small, large, labelled)


def test_subtree_needs_augmenting_paths():
    deep, leaf = Tree(0, (Tree(0),)), Tree(0)
    assert is_subtree(Tree(0, (leaf, deep)), Tree(0, (deep, leaf)))
    assert not is_subtree(Tree(0, (deep, deep)), Tree(0, (deep, leaf)))


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
        assert is_subtree(pruned, tree)
