"""From a model to the equations that parameters with the same output obey, and to the points that solve them."""
