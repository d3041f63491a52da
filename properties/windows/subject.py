"""Queries whose driver is killed, of two rooms in turn: a few phones for half a minute."""

from model.vocabulary import SlackConfig, WatermarkConfig, Workload
from properties.windows.driver import prepare
from sim.kernel.log import simulate_arrivals
from sim.scenarios import umts
from tests.harness.background_kills import Subject

BATCHES = 10
CONFIGS = (
    ("slack", SlackConfig(1_000_000, 200_000, tasks=2, max_slack_us=20_000, gamma_us=1_000_000)),
    (
        "watermark",
        WatermarkConfig(
            500_000,
            200_000,
            100_000,
            k=8,
            aggregate="median",
            keyed=False,
            tasks=2,
            corrections=True,
            gamma_us=1_000_000,
        ),
    ),
    (
        "slack",
        SlackConfig(900_000, 500_000, aggregate="median", control="fixed", keyed=False, tasks=2),
    ),
)
"""Room and query; the first two are killed at the same time."""


def workload_of(number: int, seed: int) -> Workload:
    """Query number so and so, in :data:`BATCHES` micro-batches."""
    events = simulate_arrivals(umts(seed + number, messages=60), seed).events
    cuts = tuple(len(events) * batch // BATCHES for batch in range(1, BATCHES))
    room, config = CONFIGS[number % len(CONFIGS)]
    return Workload(room, events, config.to_json(), cuts, seed=seed, name=f"query-{number}")


SUBJECT = Subject("properties.windows.driver", prepare, workload_of)
