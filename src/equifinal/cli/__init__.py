"""The command line."""

from equifinal.cli.app import main

__all__ = ["main"]
