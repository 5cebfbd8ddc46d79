"""Problems as text for other tools: LaTeX, Stan and PyMC."""
