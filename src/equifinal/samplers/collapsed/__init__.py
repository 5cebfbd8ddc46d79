"""The collapsed sampler: nearly independent draws of the combinations."""
