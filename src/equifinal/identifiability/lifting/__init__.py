"""Any model as a rational one: what happens becomes inputs, functions become states and parameters of their own."""
