"""Exact algebra behind the identifiability analysis: python-flint and NumPy integers, never a float."""
