"""Queries whose driver is killed: a few phones for a minute."""

from model.vocabulary import SlackConfig, Workload
from properties.ordeal import Subject
from properties.slack.driver import prepare
from sim.arrivals import simulate_arrivals
from sim.scenarios import umts

BATCHES = 10
CONFIGS = (
    SlackConfig(1_000_000, 200_000, tasks=2, max_slack_us=20_000, gamma_us=1_000_000),
    SlackConfig(900_000, 500_000, aggregate="median", control="fixed", keyed=False, tasks=2),
)


def workload_of(number: int, seed: int) -> Workload:
    """Query number so and so, in :data:`BATCHES` micro-batches."""
    events = simulate_arrivals(umts(seed + number, messages=60), seed).events
    cuts = tuple(len(events) * batch // BATCHES for batch in range(1, BATCHES))
    config = CONFIGS[number % len(CONFIGS)].to_json()
    return Workload("slack", events, config, cuts, seed=seed, name=f"query-{number}")


SUBJECT = Subject("properties.slack.driver", prepare, workload_of)
