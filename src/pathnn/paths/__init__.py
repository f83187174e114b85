"""Graph to paths: extraction, counting, and the tries that the model reads."""

from typing import TYPE_CHECKING

from pathnn._lazy import exports

if TYPE_CHECKING:
    from pathnn.paths.count import PathExplosionError as PathExplosionError
    from pathnn.paths.count import count_paths as count_paths
    from pathnn.paths.extract import extract_paths as extract_paths
    from pathnn.paths.extract import list_paths as list_paths
    from pathnn.paths.options import PathOptions as PathOptions
    from pathnn.paths.ragged import RaggedTries as RaggedTries
    from pathnn.paths.trie import LengthTrie as LengthTrie
    from pathnn.paths.trie import PathTrie as PathTrie
    from pathnn.paths.trie import TrieLevel as TrieLevel

EXPORTS = {
    "count": ("PathExplosionError", "count_paths"),
    "extract": ("extract_paths", "list_paths"),
    "options": ("PathOptions",),
    "ragged": ("RaggedTries",),
    "trie": ("LengthTrie", "PathTrie", "TrieLevel"),
}

__all__ = [name for names in EXPORTS.values() for name in names]
__getattr__, __dir__ = exports(__name__, EXPORTS)
