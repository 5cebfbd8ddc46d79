"""Simulation-based calibration: replicates, their log, ranks, and what they say."""
