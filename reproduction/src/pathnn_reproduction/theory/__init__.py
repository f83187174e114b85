"""Check section 3.2 of the paper on all small graphs."""
