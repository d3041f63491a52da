"""PySpark pipelines: the code that really runs, written without a look at the models.

The package spans every folder ``spark_impl`` on the search path, so that a room may lie elsewhere.
"""

import os
import sys
from pkgutil import extend_path

__path__ = extend_path(__path__, __name__)

TALKATIVE = "transform_with_state_driver_worker.py"
"""The process of PySpark that prepares a stateful operator, and prints paragraphs about it."""

if str(getattr(sys.modules.get("__main__"), "__file__", "")).endswith(TALKATIVE):
    sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 (as long as the process)
