"""``python -m st_xling.cli``: the command line."""

from st_xling.cli import main

raise SystemExit(main())
