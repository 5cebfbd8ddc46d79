"""From points of a fibre to short generators of the field of identifiable functions."""
