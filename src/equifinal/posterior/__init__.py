"""The posterior density of a problem, in batches. The only room in which a likelihood meets an ODE solver."""
