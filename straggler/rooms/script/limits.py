"""Limits of scripts and of their timed runs: larger ones would not fit into memory."""

from collections.abc import Mapping, Sequence

from model.vocabulary import Event, ScriptConfig, Workload
from model.vocabulary.script.config import TIME_END_US
from model.vocabulary.settings import read_settings
from sim.script import SETTINGS
from straggler.errors import UsageError
from straggler.wiring import read_config, refuse_larger

WORKERS_MAX = 128
"""Most workers: each is a task in every micro-batch."""
CLUSTER_MAX = 10_000
"""Most arrivals of a cluster: each arrival is compared with all of them."""
TUPLES_MAX = 200_000
"""Most tuples of a timed run."""
LARGEST = {
    "sensors": 1_000,
    "workflows": 2_000,
    "windows": 100,
    "together": 100,
    "workers": WORKERS_MAX,
    "seconds": 100_000,
    "service_us": 10**9,
    "result_us": 10**9,
    "tuple_bytes": 10**9,
    "result_bytes": 10**9,
}
"""Largest values of settings of a timed run."""


def refuse_workload(workload: Workload) -> None:
    """Refuse a stored workload that nobody could run.

    Raise :class:`UsageError` with one sentence that names the offending value.
    """
    config = read_config(ScriptConfig.from_json, workload)
    refuse_impossible(config, workload.arrivals, workload.name)


def refuse_impossible(config: ScriptConfig, arrivals: Sequence[Event], name: str) -> None:
    """Raise :class:`UsageError` for bad event times, too many workers or too large clusters."""
    if config.workers > WORKERS_MAX:
        raise UsageError(f"--workers is {config.workers}; at most {WORKERS_MAX} are allowed")
    if config.cluster > CLUSTER_MAX:
        raise UsageError(f"--cluster is {config.cluster}; at most {CLUSTER_MAX:,} are allowed")
    bad = next((each for each in arrivals if not 0 <= each.event_time_us < TIME_END_US), None)
    if bad is not None:
        text = f"row {bad.seq + 1} of {name} has the event time {bad.event_time_us} us"
        raise UsageError(f"{text}; it must be at least 0 (1970) and below 2^61")


def refuse_settings(settings: Mapping[str, str]) -> None:
    """Refuse settings of a timed run that would not end.

    Raise :class:`UsageError` with one sentence that names the offending value, and ``ValueError``
    for a value that is not allowed at all.
    """
    refuse_larger(settings, LARGEST)
    values = read_settings(settings, SETTINGS)
    seconds, rates_hz = values["seconds"], values["rates_hz"]
    rate_hz = values["sensors"] * sum(rates_hz) / len(rates_hz)
    if rate_hz * seconds > TUPLES_MAX:
        raise UsageError(
            f"seconds is {seconds}: with {rate_hz:,.0f} tuples a second that is too"
            f" many; at most {TUPLES_MAX:,} tuples are simulated"
        )
