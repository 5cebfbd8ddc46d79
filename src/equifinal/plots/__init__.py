"""Figures, one function each. Every function draws on a matplotlib figure of its own and returns it."""
