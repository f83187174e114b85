"""The table about section 3.2 in the docs, written from the result file, and the pictures of its examples."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pathnn.files import atomic_write
from pathnn_reproduction.markdown import table as markdown_table
from pathnn_reproduction.theory.compare import Example
from pathnn_reproduction.theory.table import Row, Table, from_result, theory_table

BEGIN, END = "<!-- begin: written by pathnn reproduce theory -->", "<!-- end -->"


HEAD = (
    "statement", "claim", "paths", "vertices of one connected graph", "of one graph", "of two graphs",
    "connected graphs", "all graphs",
)  # fmt: skip


def example_text(example: Example) -> str:
    """An example in words; vertices are counted from 1, as in the pictures.

    >>> example_text(Example((3, 1), 2, ((1, ()), (2, ((0, 1),))), (0, 0)))
    'height 2: v1 of 1 vertex without edges, and v1 of 2 vertices with edges 1-2'
    """
    graphs = []
    for num_nodes, edges in example.graphs:
        vertices = "1 vertex" if num_nodes == 1 else f"{num_nodes} vertices"
        listed = " ".join(f"{u + 1}-{v + 1}" for u, v in edges)
        graphs.append(f"{vertices} {f'with edges {listed}' if listed else 'without edges'}")
    names = [f"v{v + 1}" for v in example.vertices]
    if not names:
        text = " against ".join(graphs)
    elif len(graphs) == 1:
        text = f"{' and '.join(names)} of {graphs[0]}"
    else:
        text = ", and ".join(f"{name} of {graph}" for name, graph in zip(names, graphs, strict=True))
    return f"height {example.height}: {text}"


def cell_text(cell: tuple[str, int | None] | None) -> str:
    """A cell of the table: the answer, and its example's number.

    >>> cell_text(("no", 3)), cell_text(("yes", None)), cell_text(None)
    ('no [3]', 'yes', '')
    """
    if cell is None:
        return ""
    answer, number = cell
    return answer if number is None else f"{answer} [{number}]"


def draw_examples(table: Table, folder: Path, suffix: str = "svg") -> list[Path]:
    """Draw every example of a table into `folder`, as `example-N`."""
    from pathnn_reproduction.figures.drawing import draw_example
    from pathnn_reproduction.figures.figures import save_picture

    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"example-{number}.{suffix}" for number in range(1, len(table.examples) + 1)]
    for path, example in zip(paths, table.examples, strict=True):
        save_picture(draw_example(example), path, dpi=110)
    return paths


def theory_block(result: dict[str, Any], pictures: str = "figures/theory") -> str:
    """The part of docs/theory.md that is written from the result file, between its two marks."""
    table = theory_table(from_result(result))
    settings, compared, numbered = result["settings"], result["compared"], result["numbered"]
    lines = [
        BEGIN,
        f"All {result['graphs']:,} graphs with 1 to {settings['max_vertices']} vertices, all heights 1 to "
        f"{settings['max_height']}. SP was tried in {compared['sp']:,} numbered graphs (every labelled graph with up "
        f"to {settings['all_numberings']} vertices, {settings['copies'] + 1} numberings of each larger one), "
        f"invariance of SP⁺ and AP in {numbered['ap']:,}.",
        "",
        markdown_table(HEAD, [_markdown_row(row, pictures) for row in table.rows]),
        "",
        "The examples, each the smallest of its kind (fewest vertices, then edges, then height):",
        "",
        *(
            f"- [{number}]({pictures}/example-{number}.png) {example_text(example)}"
            for number, example in enumerate(table.examples, start=1)
        ),
        "",
        f"*`results/theory.json`: {result['seconds']:.0f} s on {result['device']}, {result['time']}, commit "
        f"{result['commit']}, seed {result['seed']}.*",
        END,
    ]
    return "\n".join(lines)


def _markdown_row(row: Row, pictures: str) -> list[str]:
    cells = []
    for cell in row.cells:
        text = cell_text(cell).split(" ")[0]
        text = f"**{text}**" if text == "no" else text
        number = None if cell is None else cell[1]
        cells.append(text if number is None else f"{text} [{number}]({pictures}/example-{number}.png)")
    return [row.statement, row.claim, row.about, *cells]


def check_page(page: Path) -> str:
    """The text of a page that has the two marks of the block, or an error that says what is missing."""
    text = page.read_text()
    if BEGIN not in text or END not in text:
        raise ValueError(f"{page} has no place for the table: expected the lines {BEGIN!r} and {END!r}.")
    return text


def write_block(page: Path, block: str) -> None:
    """Put the block into a page between its two marks."""
    before, rest = check_page(page).split(BEGIN, 1)
    with atomic_write(page) as file:
        file.write((before + block + rest.split(END, 1)[1]).encode())
