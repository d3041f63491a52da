"""Settings of a run of room ``slack``."""

from collections.abc import Mapping

from model.vocabulary import SlackConfig
from model.vocabulary.answers import AGGREGATES
from model.vocabulary.slack import CONTROLS, METHODS, SAMPLINGS
from sim.kernel.run import TimedRun
from sim.settings import AUTO, YES, Setting, Word, with_defaults
from sim.slack.room import simulate
from sim.windows.scenarios import SCENARIOS
from sim.windows.settings import CLUSTER_DEFAULTS, plan_of, query_of

DEFAULTS: Mapping[str, Setting] = {
    "scenario": Word("umts", SCENARIOS),
    "messages": AUTO,  # of each source; auto: as many as the scenario says
    # The query, by the names of SlackConfig.
    "size_us": 10_000_000,
    "slide_us": 2_000_000,
    "aggregate": Word("sum", AGGREGATES),
    "q": 0.5,
    "keyed": YES,
    "tasks": 2,
    "control": Word("conformal", CONTROLS),
    "eps": 0.05,
    "delta": 0.05,
    "lambda_thr": AUTO,
    "method": Word("normal", METHODS),
    "sampling": Word("exchangeable", SAMPLINGS),
    "cv": AUTO,
    "fixed_slack_us": 0,
    "learning_rate": 0.05,
    "kp": 0.2,
    "kd": 4.0,
    "feedback_us": AUTO,
    "max_slack_us": AUTO,
    "max_future_us": AUTO,
    "gamma_us": 5_000_000,
    "max_age_us": AUTO,
    "dedup": YES,
    # What it runs on.
    **CLUSTER_DEFAULTS,
}
"""Every setting with its default; ``auto`` is what docs/slack.md says happens by itself."""

_WHEN_NOT_AUTO: Mapping[str, type[int] | type[float]] = {
    "lambda_thr": float,
    "cv": float,
    "feedback_us": int,
    "max_slack_us": int,
    "max_future_us": int,
    "max_age_us": int,
}


def from_settings(settings: Mapping[str, str], seed: int) -> TimedRun:
    """Run with :data:`DEFAULTS`, except for what ``settings`` say.

    Raises ``ValueError`` with one sentence that names the offending key or value.
    """
    given = with_defaults(settings, DEFAULTS)
    query = SlackConfig.from_json(query_of(given, SlackConfig, DEFAULTS, _WHEN_NOT_AUTO))
    return simulate(plan_of(given, seed), query, seed)
