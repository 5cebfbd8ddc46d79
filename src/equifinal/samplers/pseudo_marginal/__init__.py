"""The pseudo-marginal sampler: Metropolis on the combinations."""
