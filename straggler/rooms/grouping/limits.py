"""Limits of routers and of their timed runs: anything that would take all day is refused."""

from collections.abc import Iterable, Mapping
from math import isfinite

from model.vocabulary import Event, GroupingConfig, Workload
from model.vocabulary.settings import JsonObject, pick, read_settings
from sim.clusters import ClusterSettings
from sim.grouping import SETTINGS, instances
from sim.grouping.settings import RunSettings
from sim.kernel.plan import Plan
from straggler.errors import UsageError
from straggler.wiring import refuse_larger

INSTANCES_MAX = 128
"""Most instances: every tuple is compared with the load of each, in a table for every policy."""
SENDERS_MAX = 64
"""Most senders: each is a task in every micro-batch."""
BATCHES_MAX = 2_000
"""Most micro-batches of a timed run, which is made twice for every policy."""
LARGEST = {
    "tuples": 200_000,
    "keys": 200_000,
    "instances": INSTANCES_MAX,
    "senders": SENDERS_MAX,
    "queue_limit": 1_000_000,
    "service_us": 10**9,
    "tuple_bytes": 10**9,
    "loss": 0.9,  # each message is then sent ten times
}
"""Largest values of settings of a timed run."""


def refuse_settings(settings: Mapping[str, str]) -> None:
    """Refuse settings of a timed run that would not end.

    Raise :class:`UsageError` with one sentence that names the offending value, and ``ValueError``
    for a value that is not allowed at all.
    """
    refuse_larger(settings, LARGEST)
    values = read_settings(settings, SETTINGS)
    if _micro_batches(values) > BATCHES_MAX:
        name = "batch_tuples" if values["batch_us"] is None else "batch_us"
        raise UsageError(
            f"{name} is {values[name]}: too many micro-batches;"
            f" at most {BATCHES_MAX:,} are simulated"
        )


def _micro_batches(values: JsonObject) -> float:
    """Return about how many micro-batches a stream has; one of a trigger by time may be empty."""
    run = pick(RunSettings, values)
    if run.batch_us is None:
        return run.tuples / run.batch_tuples
    bare = Plan((), cluster=pick(ClusterSettings, values).cluster)
    instances.check(bare)
    size = run.size(instances.ideal_hz(bare, values["instances"]), ())
    return min(run.tuples, size.duration_us / run.batch_us)


def refuse_workload(config: GroupingConfig, workload: Workload) -> None:
    """Refuse a stored workload that nobody could run.

    Raise :class:`UsageError` with one sentence that names the offending value.
    """
    refuse_config(config)
    refuse_values(workload.arrivals, workload.name)


def refuse_values(arrivals: Iterable[Event], name: str) -> None:
    """Raise :class:`UsageError` if the absolute values have no finite sum."""
    if not isfinite(sum(abs(event.value) for event in arrivals if isfinite(event.value))):
        raise UsageError(f"the values of {name} add up to more than 64-bit floats hold")


def refuse_config(config: GroupingConfig) -> None:
    """Raise :class:`UsageError` for too many instances or senders."""
    for name, most in (("instances", INSTANCES_MAX), ("senders", SENDERS_MAX)):
        if (value := getattr(config, name)) > most:
            raise UsageError(f"{name} is {value}; at most {most} are allowed")
