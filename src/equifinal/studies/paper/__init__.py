"""The case studies of the paper behind this package: its samplers side by side, and exact posteriors to judge them."""
