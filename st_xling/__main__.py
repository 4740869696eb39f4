"""``python -m st_xling``: the command line."""

from st_xling.cli import main

raise SystemExit(main())
