"""What experiments with room ``join`` measure beyond one timed run.

Rules of this file:

* A chain sustains a rate if no worker has to work more than a share of the time in which tuples
  come. Work is that of all the run, what the flush does included.
* Batches are a stand-in of ours for systems that join each small batch of a stream by itself. No
  time is simulated for them: they say which pairs are found and what is compared.
"""

from collections.abc import Mapping
from math import sqrt

import numpy as np

from model.vocabulary.join import STREAMS, R
from sim.join.room import ChainRun
from sim.join.settings import DEFAULTS, from_settings, stream_of
from sim.kernel.log import simulate_arrivals
from sim.kernel.recorder import Figure
from sim.settings import Setting, Word, chosen, number

LIMITS = ("work", "held")
RATE_DEFAULTS: Mapping[str, Setting] = {
    **DEFAULTS,
    "limit": Word("work", LIMITS),
    "limit_share": 0.95,
}
"""Of :func:`largest_rate`; both streams have the rate that is looked for, and R's at first."""
FACTOR, HALVINGS = 1.4, 4
"""By which a rate is changed until the limit lies between two of them, and how often that interval
is halved then: to 1.4 ** (1/16), which is 2%."""


def largest_rate(settings: Mapping[str, str], seed: int) -> dict[str, Figure]:
    """The rate of either stream that a chain sustains.

    ``limit`` says what must not be above ``limit_share``: ``work`` of the busiest worker, as a
    share of the time, or ``held``, the mean utilisation (of memory).
    """
    given = {key: str(settings.get(key, default)) for key, default in RATE_DEFAULTS.items()}
    limit, share = given.pop("limit"), given.pop("limit_share")
    chosen("limit", limit, dict.fromkeys(LIMITS))
    target = float(number("limit_share", share, float))
    rate_hz = float(number("rate_r_hz", given["rate_r_hz"], float))

    def is_sustained(rate_hz: float) -> bool:
        asked = {**given, "rate_r_hz": f"{rate_hz:.6g}", "rate_s_hz": f"{rate_hz:.6g}"}
        run = from_settings(asked, seed)
        seconds = float(given["seconds"])
        return (peak_held(run) if limit == "held" else work_share(run, seconds)) <= target

    step = FACTOR if is_sustained(rate_hz) else 1 / FACTOR
    while is_sustained(rate_hz * step) is (step > 1):
        rate_hz *= step
    low, high = sorted((rate_hz, rate_hz * step))
    for _ in range(HALVINGS):
        middle = sqrt(low * high)
        low, high = (middle, high) if is_sustained(middle) else (low, middle)
    return {"largest_rate_hz": low, "unsustained_hz": high}


def work_share(run: ChainRun, seconds: float) -> float:
    """Work of the busiest worker, by the time in which tuples came."""
    busy = max(float(value) for key, value in run.summary.items() if key.startswith("busy_"))
    return busy * float(run.summary["duration_us"]) / (seconds * 1e6)


def peak_held(run: ChainRun) -> float:
    """The highest mean utilisation."""
    return float(run.summary["peak_utilisation"])


CHAINS = ("shared", "own")
CHAIN_DEFAULTS: Mapping[str, Setting] = {**DEFAULTS, "chains": Word("shared", CHAINS)}
"""Of :func:`bandwidth`; ``own``: every query has a chain and a copy of the streams of its own."""


def bandwidth(settings: Mapping[str, str], seed: int) -> dict[str, Figure]:
    """Bytes a second between workers, over all chains that it takes."""
    given = dict(settings)
    chains = given.pop("chains", "shared")
    chosen("chains", chains, dict.fromkeys(CHAINS))
    if chains == "shared":
        runs = [from_settings(given, seed)]
    else:
        queries = int(number("queries", given.get("queries", str(DEFAULTS["queries"])), int))
        eps = float(number("eps", given.get("eps", str(DEFAULTS["eps"])), float))
        # As in one chain: each query has a larger band than the one before it.
        alone = [{**given, "queries": "1", "eps": f"{eps + each}"} for each in range(queries)]
        runs = [from_settings(each, seed) for each in alone]
    names = ("bytes_per_s", "results", "comparisons")
    return {name: sum(float(run.summary[name]) for run in runs) for name in names}


BATCH_DEFAULTS: Mapping[str, Setting] = {**DEFAULTS, "batch_us": 1_000_000}
"""Of :func:`in_batches`."""


def in_batches(settings: Mapping[str, str], seed: int) -> dict[str, Figure]:
    """Pairs of equal keys within the window that arrive in the same batch, of all there are."""
    given = {key: str(settings.get(key, default)) for key, default in BATCH_DEFAULTS.items()}
    batch_us = int(number("batch_us", given.pop("batch_us"), int))
    window_us = int(number("window_us", given["window_us"], int))
    events = simulate_arrivals(stream_of(given), seed, STREAMS).events
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
