"""Measurables of room ``join``: runs that experiments can make.

Rules of this file:

* A chain sustains a rate if no worker has to work more than a given share of the time in which
  tuples come. Work covers the whole run, including the flush.
* Batches stand for systems that join each small batch of a stream by itself. No time is simulated
  for batches: the pairs that they find are counted, and those that they compare.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt
from typing import Annotated

import numpy as np

from model.vocabulary.join import STREAMS, R
from model.vocabulary.settings import Setting, Settings, pick, read_settings, settings_of
from sim.join.room import ChainRun
from sim.join.settings import SETTINGS, StreamSettings, from_settings
from sim.kernel.log import simulate_arrivals
from sim.kernel.recorder import Figure
from sim.sweep.measurable import Measurable, moments, summaries


@dataclass(frozen=True, slots=True)
class SearchSettings(Settings):
    """Settings of :func:`largest_rate`; it searches from R's rate, the same for both streams."""

    limit: Annotated[
        str,
        Setting(
            "figure that is limited: work of the busiest worker, as a share of the time, or held,"
            " the mean utilisation of memory",
            choices=("work", "held"),
        ),
    ] = "work"
    limit_share: Annotated[float, Setting("limit of that figure")] = 0.95


RATE_SETTINGS: Mapping[str, Setting] = {**SETTINGS, **settings_of(SearchSettings)}
FACTOR, HALVINGS = 1.4, 4
"""Factor of the search for an interval that contains the limit, and number of halvings of that
interval: to 1.4 ** (1/16), which is 2%."""


def largest_rate(settings: Mapping[str, str], seed: int) -> dict[str, Figure]:
    """Find the highest rate of both streams at which the limited figure stays within its limit."""
    values = read_settings(settings, RATE_SETTINGS)
    search = pick(SearchSettings, values)
    given = {name: text for name, text in settings.items() if name in SETTINGS}
    rate_hz = float(values["rate_r_hz"])

    def is_sustained(rate_hz: float) -> bool:
        asked = {**given, "rate_r_hz": f"{rate_hz:.6g}", "rate_s_hz": f"{rate_hz:.6g}"}
        run = from_settings(asked, seed)
        seconds = float(values["seconds"])
        figure = peak_utilisation(run) if search.limit == "held" else work_share(run, seconds)
        return figure <= search.limit_share

    step = FACTOR if is_sustained(rate_hz) else 1 / FACTOR
    while is_sustained(rate_hz * step) is (step > 1):
        rate_hz *= step
    low, high = sorted((rate_hz, rate_hz * step))
    for _ in range(HALVINGS):
        middle = sqrt(low * high)
        low, high = (middle, high) if is_sustained(middle) else (low, middle)
    return {"largest_rate_hz": low, "unsustained_hz": high}


def work_share(run: ChainRun, seconds: float) -> float:
    """Return the work of the busiest worker as a share of the time in which tuples came."""
    busy = max(float(value) for key, value in run.summary.items() if key.startswith("busy_"))
    return busy * float(run.summary["duration_us"]) / (seconds * 1e6)


def peak_utilisation(run: ChainRun) -> float:
    """Return the highest mean utilisation of the workers' memory."""
    return float(run.summary["peak_utilisation"])


CHAINS = Setting(
    "own: every query has its own chain and its own copy of the streams",
    choices=("shared", "own"),
    name="chains",
    default="shared",
)
CHAIN_SETTINGS: Mapping[str, Setting] = {**SETTINGS, CHAINS.name: CHAINS}
"""Settings of :func:`bandwidth`."""


def bandwidth(settings: Mapping[str, str], seed: int) -> dict[str, Figure]:
    """Measure the bytes a second between workers, over all chains that the queries take."""
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


BATCH_US = Setting("length of a batch", above=0, name="batch_us", kind=int, default=1_000_000)
BATCH_SETTINGS: Mapping[str, Setting] = {**SETTINGS, BATCH_US.name: BATCH_US}
"""Settings of :func:`in_batches`."""


def in_batches(settings: Mapping[str, str], seed: int) -> dict[str, Figure]:
    """Measure the pairs of equal keys within the window whose tuples arrive in the same batch."""
    values = read_settings(settings, BATCH_SETTINGS)
    batch_us, window_us = values[BATCH_US.name], values["window_us"]
    plan = pick(StreamSettings, values).plan
    events = simulate_arrivals(plan, seed, STREAMS).events
    names = {key: number for number, key in enumerate(sorted({event.key for event in events}))}
    sides = []
    for is_r in (True, False):
        side = [each for each in events if (each.stream == R) is is_r]
        columns = [
            (each.event_time_us, each.arrival_us // batch_us, names[each.key]) for each in side
        ]
        sides.append(np.array(columns, dtype=np.int64).reshape(-1, 3))
    owed = found = compared = 0
    for key in names.values():
        r, s = (side[side[:, 2] == key] for side in sides)
        is_pair = np.abs(r[:, None, 0] - s[None, :, 0]) <= window_us
        is_met = r[:, None, 1] == s[None, :, 1]
        owed += int(is_pair.sum())
        found += int((is_pair & is_met).sum())
        compared += int(is_met.sum())
    return {
        "pairs": owed,
        "found": found,
        **({"found_share": found / owed} if owed else {}),
        **({"efficiency": found / compared} if compared else {}),
    }


MEASURABLES: Mapping[str, Measurable] = {
    "sim": summaries(from_settings, SETTINGS),
    "moments": moments(from_settings, SETTINGS),
    "largest-rate": Measurable(RATE_SETTINGS, largest_rate),
    "bandwidth": Measurable(CHAIN_SETTINGS, bandwidth),
    "in-batches": Measurable(BATCH_SETTINGS, in_batches),
}
