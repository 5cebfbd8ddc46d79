"""Expressions to machine code: shared terms, derivatives, LLVM assembly, a cache. Knows nothing of what it computes."""
