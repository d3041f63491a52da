"""What would take all day, or all memory, is refused before it is begun."""

from model.vocabulary import GroupingConfig, Workload
from properties.errors import UsageError

INSTANCES_MAX = 128
"""Every tuple is compared with the load of each instance, and every policy has a table of them."""
SENDERS_MAX = 64
"""Each is a task in every micro-batch."""
TIME_US_MAX = 10**12
"""Of a tuple; the work of a million tuples is still an integer of 64 bits."""


def refuse_workload(workload: Workload) -> None:
    """Refuse a stored workload that nobody could run.

    Raises :class:`UsageError` with one sentence that names the offending value.
    """
    try:
        config = GroupingConfig.from_json(workload.config)
    except (TypeError, ValueError) as error:
        raise UsageError(str(error)) from error
    refuse_config(config)


def refuse_config(config: GroupingConfig) -> None:
    """Refuse more instances, senders or time than can be waited for."""
    for name, most in (("instances", INSTANCES_MAX), ("senders", SENDERS_MAX)):
        if (value := getattr(config, name)) > most:
            raise UsageError(f"{name} is {value}; at most {most} are allowed")
    times_us = [time_us for _, times in config.times_us for time_us in times]
    for name, values in (("times_us", times_us), ("latency_us", config.latency_us)):
        if values and max(values) > TIME_US_MAX:
            raise UsageError(f"{name} has {max(values)}; at most {TIME_US_MAX} is allowed")
