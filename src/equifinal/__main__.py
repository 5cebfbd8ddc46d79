"""``python -m equifinal`` is the command line."""

from equifinal.cli import main

main()
