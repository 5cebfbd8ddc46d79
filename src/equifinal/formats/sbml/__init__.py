"""SBML, Level 2 and 3: reading models."""
