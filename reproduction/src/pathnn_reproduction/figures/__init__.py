"""Draw the figures of the paper."""
