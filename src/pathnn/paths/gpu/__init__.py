"""Extract paths on a GPU, with torch operations."""
