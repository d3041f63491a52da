"""Settings of a run of room ``watermark``."""

from collections.abc import Mapping

from model.vocabulary import WatermarkConfig
from model.vocabulary.answers import AGGREGATES
from model.vocabulary.watermark import CLOCKS, READINGS
from sim.kernel.run import TimedRun
from sim.settings import AUTO, NO, YES, Setting, Word, with_defaults
from sim.watermark.room import simulate
from sim.windows.scenarios import SCENARIOS
from sim.windows.settings import CLUSTER_DEFAULTS, plan_of, query_of

DEFAULTS: Mapping[str, Setting] = {
    "scenario": Word("phases", SCENARIOS),
    "messages": AUTO,  # of each source; auto: as many as the scenario says
    # The query, by the names of WatermarkConfig.
    "size_us": 10_000_000,
    "slide_us": 10_000_000,
    "max_wait_us": 8_000_000,
    "reading": Word("disorder", READINGS),
    "k": 50,
    "aggregate": Word("sum", AGGREGATES),
    "q": 0.5,
    "keyed": YES,
    "tasks": 2,
    "corrections": NO,
    "clocks": Word("arrivals", CLOCKS),
    "feedback_us": AUTO,
    "max_future_us": AUTO,
    "gamma_us": 5_000_000,
    "max_age_us": AUTO,
    "dedup": YES,
    # What it runs on.
    **CLUSTER_DEFAULTS,
}
"""Every setting with its default; ``auto`` is what docs/watermark.md says happens by itself."""

_WHEN_NOT_AUTO: Mapping[str, type[int]] = {
    "feedback_us": int,
    "max_future_us": int,
    "max_age_us": int,
}


def from_settings(settings: Mapping[str, str], seed: int) -> TimedRun:
    """Run with :data:`DEFAULTS`, except for what ``settings`` say.

    Raises ``ValueError`` with one sentence that names the offending key or value.
    """
    given = with_defaults(settings, DEFAULTS)
    query = WatermarkConfig.from_json(query_of(given, WatermarkConfig, DEFAULTS, _WHEN_NOT_AUTO))
    return simulate(plan_of(given, seed), query, seed)
