"""Files to problems and back, one module per format; `load` finds out which format a file has."""
