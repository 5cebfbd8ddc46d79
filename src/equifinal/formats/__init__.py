"""Files to problems and back: one module per format, and `load`, which finds out what a file is."""
