"""From prior draws to the modes and the shape of a posterior."""
