"""``python -m fieldbo`` is the command line."""

from fieldbo.cli import main

main()
