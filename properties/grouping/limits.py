"""What would take all day, or all memory, is refused before it is begun."""

from collections.abc import Iterable, Mapping
from math import isfinite

from model.vocabulary import Event, GroupingConfig, Workload
from properties.errors import UsageError
from sim.grouping import DEFAULTS

INSTANCES_MAX = 128
"""Every tuple is compared with the load of each instance, and every policy has a table of them."""
SENDERS_MAX = 64
"""Each is a task in every micro-batch."""
BATCHES_MAX = 2_000
"""Of a timed run, which is made twice for every policy."""
LARGEST = {
    "tuples": 200_000,
    "keys": 200_000,
    "instances": INSTANCES_MAX,
    "senders": SENDERS_MAX,
    "queue_limit": 1_000_000,
    "service_us": 10**9,
    "tuple_bytes": 10**9,
    "loss": 0.9,  # each message is sent ten times, then
}
"""Settings of a timed run."""


def refuse_settings(settings: Mapping[str, str]) -> None:
    """Refuse settings of a timed run with which it would not end; others are for the run to judge.

    Raises :class:`UsageError` with one sentence that names the offending value.
    """
    for key, text in settings.items():
        if key in LARGEST and _number(text) > LARGEST[key]:
            raise UsageError(f"{key} is {text}; at most {LARGEST[key]} is allowed")
    given = {**DEFAULTS, **settings}
    tuples, batch_tuples = (_number(given[key]) for key in ("tuples", "batch_tuples"))
    if batch_tuples > 0 and tuples / batch_tuples > BATCHES_MAX:
        raise UsageError(
            f"batch_tuples is {given['batch_tuples']}: that makes more than the {BATCHES_MAX:,}"
            " micro-batches that are simulated at most"
        )


def _number(text: object) -> float:
    """What is not a number is for the run to refuse."""
    try:
        return float(str(text))
    except ValueError:
        return 0.0


def refuse_workload(workload: Workload) -> None:
    """Refuse a stored workload that nobody could run.

    Raises :class:`UsageError` with one sentence that names the offending value.
    """
    try:
        config = GroupingConfig.from_json(workload.config)
    except (TypeError, ValueError) as error:
        raise UsageError(str(error)) from error
    refuse_config(config)
    refuse_values(workload.arrivals, workload.name)


def refuse_values(arrivals: Iterable[Event], name: str) -> None:
    """Refuse values of which some sum would not be finite."""
    if not isfinite(sum(abs(event.value) for event in arrivals if isfinite(event.value))):
        raise UsageError(f"the values of {name} add up to more than 64-bit floats hold")


def refuse_config(config: GroupingConfig) -> None:
    """Refuse more instances or senders than can be waited for."""
    for name, most in (("instances", INSTANCES_MAX), ("senders", SENDERS_MAX)):
        if (value := getattr(config, name)) > most:
            raise UsageError(f"{name} is {value}; at most {most} are allowed")
