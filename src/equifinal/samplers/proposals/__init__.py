"""Mixtures as frozen proposals, and how well they fit, judged by importance weights."""
