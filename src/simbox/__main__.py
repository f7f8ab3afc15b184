"""`python -m simbox sim up`: the simulator without the rest of the toolkit."""

import sys

from simbox.cli import main

sys.exit(main())
