"""Straggler: reference models, simulations and Spark pipelines for late data and slow workers.

Names are imported when they are first used, so that ``import straggler`` loads no Spark and no
simulator. A name whose packages are missing says which extra brings them. The rooms ``slack``,
``watermark``, ``join``, ``grouping`` and ``script`` are here too: ``straggler.slack.results`` reads
the answers of a :class:`SlackQuery`.
"""

from importlib import import_module
from pkgutil import extend_path
from typing import TYPE_CHECKING

__path__ = extend_path(__path__, __name__)  # a room may lie elsewhere: straggler/rooms/<room>

if TYPE_CHECKING:
    from model.vocabulary import (
        Event,
        Fault,
        GroupingConfig,
        JoinConfig,
        ScriptConfig,
        SlackConfig,
        System,
        Trace,
        WatermarkConfig,
        Workload,
    )
    from model.vocabulary.join_load import LoadRules
    from spark_impl import grouping, join, script, slack, watermark
    from spark_impl.aggregates import avg, count, max_, median, min_, quantile, sum_
    from spark_impl.grouping import Grouping
    from spark_impl.join import ChainJoin
    from spark_impl.over import over
    from spark_impl.retention import drop_before
    from spark_impl.runtime.accounts import ledger
    from spark_impl.runtime.failures import QueryProblem
    from spark_impl.runtime.landing import Landing
    from spark_impl.runtime.session import session
    from spark_impl.runtime.storage import InputProblem
    from spark_impl.script import ScriptQuery
    from spark_impl.slack import SlackQuery
    from spark_impl.watermark import WatermarkQuery
    from straggler.jobs.api import JobBroken, JobUndetermined, check_job, judge_job
    from straggler.judging.judge import judge_workload
    from straggler.judging.promises import assert_keeps_promises
    from straggler.simulation import simulate

__all__ = [
    "ChainJoin",
    "Event",
    "Fault",
    "Grouping",
    "GroupingConfig",
    "InputProblem",
    "JobBroken",
    "JobUndetermined",
    "JoinConfig",
    "Landing",
    "LoadRules",
    "QueryProblem",
    "ScriptConfig",
    "ScriptQuery",
    "SlackConfig",
    "SlackQuery",
    "System",
    "Trace",
    "WatermarkConfig",
    "WatermarkQuery",
    "Workload",
    "assert_keeps_promises",
    "avg",
    "check_job",
    "count",
    "drop_before",
    "grouping",
    "join",
    "judge_job",
    "judge_workload",
    "ledger",
    "max_",
    "median",
    "min_",
    "over",
    "quantile",
    "script",
    "session",
    "simulate",
    "slack",
    "sum_",
    "watermark",
]

_NAMES = {
    "model.vocabulary": (
        "Event Fault GroupingConfig JoinConfig ScriptConfig SlackConfig System Trace"
        " WatermarkConfig Workload"
    ),
    "model.vocabulary.join_load": "LoadRules",
    "straggler.jobs.api": "JobBroken JobUndetermined check_job judge_job",
    "straggler.judging.judge": "judge_workload",
    "straggler.judging.promises": "assert_keeps_promises",
    "straggler.simulation": "simulate",
    "spark_impl": "grouping join script slack watermark",
    "spark_impl.aggregates": "avg count max_ median min_ quantile sum_",
    "spark_impl.grouping": "Grouping",
    "spark_impl.join": "ChainJoin",
    "spark_impl.over": "over",
    "spark_impl.retention": "drop_before",
    "spark_impl.runtime.accounts": "ledger",
    "spark_impl.runtime.failures": "QueryProblem",
    "spark_impl.runtime.landing": "Landing",
    "spark_impl.runtime.session": "session",
    "spark_impl.runtime.storage": "InputProblem",
    "spark_impl.script": "ScriptQuery",
    "spark_impl.slack": "SlackQuery",
    "spark_impl.watermark": "WatermarkQuery",
}
"""Public names of each module."""
_EXTRAS = {
    "straggler.jobs.api": ("spark", "sim", "test"),
    "straggler.judging.promises": ("sim", "test"),
}
"""Extras of a module that needs several."""
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}

if not TYPE_CHECKING:  # a type checker knows the names above, and reports all others

    def __getattr__(name: str) -> object:
        """Import a public name when it is first used."""
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        try:
            if _HOMES[name] == "spark_impl":  # a room
                found = import_module(f"spark_impl.{name}")
            else:
                found = getattr(import_module(_HOMES[name]), name)
        except ModuleNotFoundError as error:
            from model.vocabulary.extras import describe_missing

            needed = describe_missing(error, _EXTRAS.get(_HOMES[name], ()))
            message = f"{__name__}.{name} {needed}"
            raise ModuleNotFoundError(message, name=error.name) from error
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    """Return the public names."""
    return __all__
