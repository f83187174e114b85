"""How the LSTM over paths is computed: dense, level by level, with compiled loops, with Triton."""
