"""The integrators themselves, which Numba compiles to one function: one lane after the other, step by step."""
