"""``python -m straggler.cli``: the same as ``straggler``."""

import sys

from straggler.cli.main import main

sys.exit(main())
