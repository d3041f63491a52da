"""``python -m straggler``: the same as ``straggler``."""

import sys

from straggler.cli.main import main

sys.exit(main())
