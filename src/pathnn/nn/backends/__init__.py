"""How the LSTM is run over paths: `dense` (every path on its own), `trie` (shared prefixes, own backward
pass)."""
