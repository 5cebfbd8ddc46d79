"""Samplers: one algorithm a module, each with a state, `init` and `step`; `run` drives them."""
