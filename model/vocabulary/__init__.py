"""Words that model, simulation and Spark pipelines share: data and arithmetic, no behaviour.

Rules of this package:

* Nothing here decides anything about a protocol. This package defines what a window *is*, but not
  when a window closes.
* Standard library and xxhash only.
"""

from model.vocabulary.grouping import GroupingConfig
from model.vocabulary.hashing import stable_hash, task_of
from model.vocabulary.join import JoinConfig
from model.vocabulary.script.config import ScriptConfig
from model.vocabulary.slack import SlackConfig
from model.vocabulary.trace import Step, System, Trace
from model.vocabulary.watermark import WatermarkConfig
from model.vocabulary.windows import WindowSpec
from model.vocabulary.workload import Event, Fault, Workload

__all__ = [
    "Event",
    "Fault",
    "GroupingConfig",
    "JoinConfig",
    "ScriptConfig",
    "SlackConfig",
    "Step",
    "System",
    "Trace",
    "WatermarkConfig",
    "WindowSpec",
    "Workload",
    "stable_hash",
    "task_of",
]
