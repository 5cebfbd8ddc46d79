"""The geometric sampler: RATTLE along fibres, Metropolis across them."""
