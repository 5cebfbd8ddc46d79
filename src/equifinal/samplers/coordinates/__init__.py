"""Coordinates in which the combinations are proposed."""
