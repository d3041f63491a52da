"""Measurables of room ``join``: runs that experiments can make.

Rules of this file:

* A rate is sustained if one figure, which an experiment chooses, is within its limit: the lag
  behind the last arrival, of the chain or of micro-batches; the work of the busiest worker, that
  of the flush included, as a share of the time in which tuples come; or utilisation of memory.
* A lag ends only when overdue tuples have moved on: a chain that is too slow would otherwise leave
  its work to the flush, after the end that is measured.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import sqrt
from typing import Annotated

from model.vocabulary.settings import (
    JsonObject,
    Setting,
    Settings,
    pick,
    read_settings,
    settings_of,
)
from sim.join.batches import BatchRun, BatchSettings, simulate_batches
from sim.join.settings import EXAMPLE, SETTINGS, config_of, from_settings, plan_of, run_values
from sim.kernel.recorder import Figure
from sim.sweep.measurable import Measurable, moments, summaries

BATCHES_SETTINGS: Mapping[str, Setting] = {**SETTINGS, **settings_of(BatchSettings)}


def work_share(values: JsonObject, seed: int) -> float:
    """Return the work of the busiest worker as a share of the time in which tuples came."""
    summary = run_values(values, seed).summary
    busy = max(float(value) for key, value in summary.items() if key.startswith("busy_"))
    return busy * float(summary["duration_us"]) / (float(values["seconds"]) * 1e6)


def peak_utilisation(values: JsonObject, seed: int) -> float:
    """Return the highest mean utilisation of the workers' memory."""
    return float(run_values(values, seed).summary["peak_utilisation"])


def lag_share(values: JsonObject, seed: int) -> float:
    """Return how long the chain lags behind the last arrival, as a share of the time before it."""
    run = run_values({**values, "drains": True}, seed)
    return run.lag_us / (float(values["seconds"]) * 1e6)


def batches_lag_share(values: JsonObject, seed: int) -> float:
    """Return the same share for micro-batches, less a batch: a job that keeps up has that lag."""
    lag_us = _run_batches(values, seed).lag_us - float(values["batch_us"])
    return lag_us / (float(values["seconds"]) * 1e6)


LIMITED: Mapping[str, Callable[[JsonObject, int], float]] = {
    "work": work_share,
    "held": peak_utilisation,
    "lag": lag_share,
    "batches-lag": batches_lag_share,
}
"""Figures that show whether a rate is sustained."""


@dataclass(frozen=True, slots=True)
class SearchSettings(Settings):
    """Settings of :func:`largest_rate`; the search begins at R's rate, for both streams."""

    limit: Annotated[
        str,
        Setting(
            "figure that is limited: work of the busiest worker, or lag of the chain or of"
            " micro-batches behind the last arrival, as shares of the time; or held, the mean"
            " utilisation of memory",
            choices=LIMITED,
        ),
    ] = "work"
    limit_share: Annotated[float, Setting("limit of that figure")] = 0.95


RATE_SETTINGS: Mapping[str, Setting] = {**BATCHES_SETTINGS, **settings_of(SearchSettings)}
FACTOR, HALVINGS = 1.4, 4
"""Factor of the search for an interval that contains the limit, and number of halvings of that
interval, which leave a factor of 1.4 ** (1/16): 2%."""


def largest_rate(settings: Mapping[str, str], seed: int) -> dict[str, Figure]:
    """Find the highest rate of both streams at which the limited figure stays within its limit."""
    values = read_settings(settings, RATE_SETTINGS)
    search = pick(SearchSettings, values)
    rate_hz = float(values["rate_r_hz"])

    def is_sustained(rate_hz: float) -> bool:
        asked = {**values, "rate_r_hz": rate_hz, "rate_s_hz": rate_hz}
        return LIMITED[search.limit](asked, seed) <= search.limit_share

    step = FACTOR if is_sustained(rate_hz) else 1 / FACTOR
    while is_sustained(rate_hz * step) is (step > 1):
        rate_hz *= step
    low, high = sorted((rate_hz, rate_hz * step))
    for _ in range(HALVINGS):
        middle = sqrt(low * high)
        low, high = (middle, high) if is_sustained(middle) else (low, middle)
    return {"largest_rate_hz": low, "unsustained_hz": high}


CHAINS = Setting(
    "own: every query has its own chain and its own copy of the streams",
    choices=("shared", "own"),
    name="chains",
    default="shared",
)
CHAIN_SETTINGS: Mapping[str, Setting] = {**SETTINGS, CHAINS.name: CHAINS}
"""Settings of :func:`bandwidth`."""


def bandwidth(settings: Mapping[str, str], seed: int) -> dict[str, Figure]:
    """Measure bytes a second between workers, results and comparisons, over all chains."""
    values = read_settings(settings, CHAIN_SETTINGS)
    given = {name: text for name, text in settings.items() if name in SETTINGS}
    if values[CHAINS.name] == "shared":
        runs = [from_settings(given, seed)]
    else:
        # As in one chain, each query has a larger band than the one before it.
        bands = [values["eps"] + each for each in range(values["queries"])]
        alone = [{**given, "queries": "1", "eps": f"{eps}"} for eps in bands]
        runs = [from_settings(each, seed) for each in alone]
    names = ("bytes_per_s", "results", "comparisons")
    return {name: sum(float(run.summary[name]) for run in runs) for name in names}


def in_batches(settings: Mapping[str, str], seed: int) -> dict[str, Figure]:
    """Count pairs of equal keys within the window, and those that a join batch by batch finds."""
    counts = _run_batches(read_settings(settings, BATCHES_SETTINGS), seed).counts
    found, compared = int(counts.found.sum()), int(counts.comparisons.sum())
    return {
        "pairs": counts.owed,
        "found": found,
        **({"found_share": found / counts.owed} if counts.owed else {}),
        **({"efficiency": found / compared} if compared else {}),
    }


def _run_batches(values: JsonObject, seed: int) -> BatchRun:
    batches = pick(BatchSettings, values)
    return simulate_batches(plan_of(values), config_of(values), batches, seed)


MEASURABLES: Mapping[str, Measurable] = {
    "sim": summaries(from_settings, SETTINGS, EXAMPLE),
    "moments": moments(from_settings, SETTINGS),
    "largest-rate": Measurable(RATE_SETTINGS, largest_rate),
    "bandwidth": Measurable(CHAIN_SETTINGS, bandwidth),
    "in-batches": Measurable(BATCHES_SETTINGS, in_batches),
}
