"""What happens in a sweep, as it happens. Progress, JSON lines and JUnit are made from it."""

from typing import Any, NamedTuple, TypeAlias

from model.checking.claims import Outcome
from sim.sweep.results import Failed, Results, record_of


class Started(NamedTuple):
    """Everything has been read; nothing has been run."""

    effort: str
    experiments: tuple[str, ...]
    runs: int
    """Different ones."""
    repeated: int
    """How many more there are if those that experiments have in common count for each."""
    stored: int
    """Of different ones there are figures already."""
    damaged: tuple[str, ...]
    """Addresses of runs whose files are there and cannot be trusted; they are done again."""
    jobs: int
    """What is to be done."""


class JobFinished(NamedTuple):
    """Runs that share their arrivals, or one by itself, are done and stored."""

    experiment: str
    addresses: tuple[str, ...]
    seed: int
    seconds: float
    peak_mb: float
    left_s: float
    """Until everything is done, as far as can be told."""


class JobFailed(NamedTuple):
    """They are not."""

    experiment: str
    failed: tuple[Failed, ...]
    seconds: float
    left_s: float


class Judged(NamedTuple):
    """Nothing of an experiment is left to do."""

    results: Results


class Ended(NamedTuple):
    """Everything is done."""

    outcome: Outcome
    seconds: float


Event: TypeAlias = Started | JobFinished | JobFailed | Judged | Ended


def as_record(event: Event) -> dict[str, Any]:
    """An event as JSON has it."""
    match event:
        case Started():
            return {"event": "started", **event._asdict()}
        case JobFinished():
            return {"event": "run finished", **event._asdict()}
        case JobFailed():
            runs = [
                {
                    "run": each.run.address,
                    "settings": dict(each.run.settings),
                    "seed": each.run.seed,
                    "error": each.error,
                    "again": each.again,
                }
                for each in event.failed
            ]
            return {
                "event": "run failed",
                "experiment": event.experiment,
                "runs": runs,
                "seconds": event.seconds,
                "left_s": event.left_s,
            }
        case Judged():
            record = record_of(event.results)
            name = record["experiment"]["name"]
            kept = ("effort", "rows", "problems", "expectations", "outcome", "verdict")
            return {"event": "judged", "experiment": name, **{key: record[key] for key in kept}}
        case Ended():
            return {"event": "ended", "outcome": str(event.outcome), "seconds": event.seconds}
