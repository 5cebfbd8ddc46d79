"""Driving any sampler: settings, segments, checkpoints, executors."""
