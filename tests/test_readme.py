"""The README's Python examples run, one after the other, in one namespace."""

import re
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"


def test_python_examples_run(capsys):
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.DOTALL)
    namespace: dict = {}
    for block in blocks:
        exec(compile(block, str(README), "exec"), namespace)
    assert blocks
    assert namespace["out"].shape == (4, 1)
    assert repr(namespace["trie"]).startswith("PathTrie(collection='ap', k=3, num_paths=24, entries=60")
    assert capsys.readouterr().out.startswith("tensor([[8, 8, 0]])")


def test_links_lead_somewhere():
    links = re.findall(r"\]\(([^)#]+)\)", README.read_text())
    missing = [link for link in links if not link.startswith("http") and not (README.parent / link).exists()]
    assert not missing
