"""Graph to paths: extraction, counting, and the tries that the model reads."""

from pathnn.paths.count import PathExplosionError as PathExplosionError
from pathnn.paths.count import count_paths as count_paths
from pathnn.paths.extract import extract_paths as extract_paths
from pathnn.paths.extract import list_paths as list_paths
from pathnn.paths.ragged import RaggedTries as RaggedTries
from pathnn.paths.trie import LengthTrie as LengthTrie
from pathnn.paths.trie import PathTrie as PathTrie
from pathnn.paths.trie import TrieLevel as TrieLevel

__all__ = [
    "LengthTrie", "PathExplosionError", "PathTrie", "RaggedTries", "TrieLevel",
    "count_paths", "extract_paths", "list_paths",
]  # fmt: skip
