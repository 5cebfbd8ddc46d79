"""From a problem to results: one fit, several samplers side by side, calibration, the case studies of the paper."""
