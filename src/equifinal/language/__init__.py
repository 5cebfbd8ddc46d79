"""Text to an exact rational model: expressions, their parser, the reader of equations, `Model`."""
