"""Settings of a timed run of room ``slack``."""

from collections.abc import Mapping

from model.vocabulary import SlackConfig
from model.vocabulary.settings import Setting, pick, read_settings, schema
from sim.kernel.run import TimedRun
from sim.slack.room import simulate
from sim.windows.settings import HARDWARE, StreamSettings, plan_of

SETTINGS: Mapping[str, Setting] = {
    **schema(StreamSettings, SlackConfig, size_us=10_000_000, slide_us=2_000_000, tasks=2),
    **HARDWARE,
}

EXAMPLE = {
    "scenario": "bursts",
    "service_us": "10ms",
    "tiers": "process,rack",
    "faults": "slow worker-1 60s 10s 3; fail worker-0 100s 4s",
}


def from_settings(texts: Mapping[str, str], seed: int) -> TimedRun:
    """Run the room with these settings, and defaults for all others.

    Raise ``ValueError`` with one sentence that names the offending name or value.
    """
    values = read_settings(texts, SETTINGS)
    return simulate(plan_of(values, seed), pick(SlackConfig, values), seed)
