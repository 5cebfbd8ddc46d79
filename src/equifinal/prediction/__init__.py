"""From parameters to trajectories, bands and data: simulation, prediction, equivalents, fresh data."""
