"""Settings of a timed run of room ``watermark``."""

from collections.abc import Mapping

from model.vocabulary import WatermarkConfig
from model.vocabulary.settings import Setting, pick, read_settings, schema
from sim.kernel.run import TimedRun
from sim.watermark.room import simulate
from sim.windows.settings import HARDWARE, StreamSettings, plan_of

SETTINGS: Mapping[str, Setting] = {
    **schema(StreamSettings, scenario="phases"),
    **schema(
        WatermarkConfig, size_us=10_000_000, slide_us=10_000_000, max_wait_us=8_000_000, tasks=2
    ),
    **HARDWARE,
}

EXAMPLE = {
    "scenario": "phases",
    "corrections": "yes",
    "service_us": "40ms",
    "tiers": "process,rack",
    "faults": "slow worker-1 150s 60s 3; fail worker-0 400s 20s",
}


def from_settings(texts: Mapping[str, str], seed: int) -> TimedRun:
    """Run the room with these settings, and defaults for all others.

    Raise ``ValueError`` with one sentence that names the offending name or value.
    """
    values = read_settings(texts, SETTINGS)
    return simulate(plan_of(values, seed), pick(WatermarkConfig, values), seed)
