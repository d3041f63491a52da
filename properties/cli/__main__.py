"""``python -m properties.cli``: the same as ``straggler``."""

import sys

from properties.cli.main import main

sys.exit(main())
