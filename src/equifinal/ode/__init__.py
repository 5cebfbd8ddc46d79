"""Compiled, batched solution of ordinary differential equations. Knows nothing of priors, noise or data."""

from equifinal.ode.compile import System, compile_system
from equifinal.ode.inputs import Inputs
from equifinal.ode.simulate import Status, Trajectories, simulate

__all__ = ["Inputs", "Status", "System", "Trajectories", "compile_system", "simulate"]
