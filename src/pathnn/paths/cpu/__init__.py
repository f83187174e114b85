"""Extract paths on a CPU, with compiled loops."""
