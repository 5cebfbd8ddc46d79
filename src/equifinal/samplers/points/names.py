"""What may be asked for by name: kinds of points, ways to count their roots, and laws. Quickly imported."""

POINTS = ("lattice", "iid")
ROOTS = ("sum", "one")
LAWS = ("interval", "polytope", "prior", "uniform", "local", "learned")
