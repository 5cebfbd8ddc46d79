"""Exact arithmetic: residues, polynomials, power series, straight-line programs, ranks."""
