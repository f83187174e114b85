"""Graph to paths: extraction, counting, and the tries that the model reads."""

from typing import TYPE_CHECKING

from pathnn._lazy import exports

if TYPE_CHECKING:
    from pathnn.paths.count import PathExplosionError as PathExplosionError, count_paths as count_paths
    from pathnn.paths.extract import extract_paths as extract_paths, list_paths as list_paths
    from pathnn.paths.options import PathOptions as PathOptions
    from pathnn.paths.ragged import RaggedTries as RaggedTries
    from pathnn.paths.trie import LengthTrie as LengthTrie, PathTrie as PathTrie, TrieLevel as TrieLevel

__all__, __getattr__, __dir__ = exports(__name__)
