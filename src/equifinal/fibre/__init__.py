"""Fibres: every parameter vector that gives the same output. Knows nothing of data or differential equations."""

from equifinal.fibre.chart import Roots, RootStatus
from equifinal.fibre.fibre import Fibre
from equifinal.fibre.weighted import Weighted

__all__ = ["Fibre", "RootStatus", "Roots", "Weighted"]
