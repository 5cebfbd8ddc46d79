"""The random walk: the baseline."""
