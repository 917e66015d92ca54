"""`python -m mzlite`."""

import sys

from mzlite.cli import main

sys.exit(main())
