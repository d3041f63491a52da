"""Load of a chain: decisions that follow it, and what they ask of an epoch.

Source: docs/join.md, sections 7, 8 and 14.

Rules of this file:

* Pure functions: a decision depends on rules, state and measurement, a draw on the arrival alone.
  The caller passes the time.
* ``utilisation`` is the number of tuples held divided by ``capacity``, except in ``decide``: there
  it is the share of its time in which a worker was at work.
* Formulas are computed as they are written, so that another controller gives the same floats.
"""

from bisect import bisect_right
from collections.abc import Callable
from math import floor
from operator import attrgetter
from typing import NamedTuple

from model.vocabulary import JoinConfig
from model.vocabulary.join import STREAMS, Decision
from model.vocabulary.join_load import SHEDDING, Limits, LoadRules, LoadState, Measured

_WORD = (1 << 64) - 1

# --------------------------------------------------------------------------- a decision in force


def decision_at(config: JoinConfig, epoch: int) -> Decision:
    """Return the decision in force in an epoch; before the first one, the configuration's."""
    n = bisect_right(config.decisions, epoch, key=attrgetter("epoch"))
    if n:
        return config.decisions[n - 1]
    return Decision(epoch, config.workers, config.block_size, 0.0)


def draw(stream: str, seq: int) -> float:
    """Return the SplitMix64 draw of an arrival, in [0, 1); a larger share sheds the arrival."""
    z = (2 * seq + STREAMS.index(stream) + 1) * 0x9E3779B97F4A7C15 & _WORD
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & _WORD
    z = (z ^ z >> 27) * 0x94D049BB133111EB & _WORD
    return float((z ^ z >> 31) >> 11) / (1 << 53)


# --------------------------------------------------------------------------------------- workers


class Watch(NamedTuple):
    """Times since which the utilisation is too high or too low (us); ``None`` if it is not."""

    high_since_us: int | None = None
    low_since_us: int | None = None


def workers_for(workers: int, utilisation: float, limits: Limits) -> int:
    """Return m': ``workers * utilisation / aim``, rounded half up, but at least 1."""
    return max(1, floor(workers * utilisation / limits.aim + 0.5))


def within(workers: int, least: int, most: int) -> int:
    """Return the number of workers, clamped to ``least`` and ``most``."""
    return min(max(workers, least), most)


def is_idle(utilisation: float, limits: Limits) -> bool:
    """Return whether the utilisation is that of too many workers: below tau0."""
    return utilisation < limits.tau0


def watch(
    seen: Watch,
    now_us: int,
    workers: int,
    utilisation: float,
    limits: Limits,
    idle: Callable[[float, Limits], bool] = is_idle,
) -> tuple[Watch, int]:
    """Return the next watch state, and the number of workers wanted from now on."""
    high = seen.high_since_us if seen.high_since_us is not None else now_us
    low = seen.low_since_us if seen.low_since_us is not None else now_us
    if utilisation > limits.tau2:
        if now_us - high >= limits.out_after_us:
            return Watch(), workers_for(workers, utilisation, limits)
        return Watch(high, None), workers
    if idle(utilisation, limits):
        if now_us - low >= limits.in_after_us:
            return Watch(), workers_for(workers, utilisation, limits)
        return Watch(None, low), workers
    return Watch(), workers


# -------------------------------------------------------------------------------------- shedding


def share_to_shed(
    did: bool, smoothed: float, tau1: float, base: float, power: int, margin: float
) -> float:
    """Return the share of arrivals to shed: ``base + (1 - base) * x**power`` above tau1.

    ``power`` is 1 (linear) or 2 (quadratic); x is 0 at ``tau1`` and 1 at full utilisation. A chain
    that ``did`` shed goes on with ``base`` until the utilisation is ``margin`` below ``tau1``:
    without a margin, a base above 0 switches shedding on and off there.
    """
    if smoothed <= tau1:
        return base if did and smoothed > tau1 - margin else 0.0
    x = (min(smoothed, 1.0) - tau1) / (1 - tau1) if tau1 < 1 else 1.0
    return float(base + (1 - base) * (x if power == 1 else x * x))


# ------------------------------------------------------------------------------------ block size


def choose_block_size(
    utilisation: float, capacity: int, workers: int, tau1: float, largest: int
) -> int:
    """Return zeta(tau), most tuples of a block: no worker exceeds tau1 unless the mean does."""
    if workers == 1:
        return largest
    allowed = floor(2 * capacity * (tau1 - utilisation) / (workers - 1))
    return max(1, min(allowed, largest))


# --------------------------------------------------------------------------------- the controller


def start(rules: LoadRules, workers: int) -> LoadState:
    """Return the state of a chain with ``workers`` workers before its first measurement."""
    return LoadState(0, within(workers, rules.least, rules.most), 0.0, 0.0)


def utilisation(measured: Measured) -> float:
    """Return tau, the mean share of its time in which a worker was at work; divided once."""
    busy_us = sum(min(each, measured.elapsed_us) for each in measured.busy_us)
    return busy_us / (len(measured.busy_us) * measured.elapsed_us)


def decide(rules: LoadRules, state: LoadState, measured: Measured) -> tuple[LoadState, Decision]:
    """Return the state after an epoch, and the decision for the next one."""
    tau, m, at_us = utilisation(measured), state.workers, state.at_us + measured.elapsed_us
    smoothed = state.smoothed + rules.smoothing * (tau - state.smoothed)
    share = 0.0
    if rules.shed != "no":
        power = SHEDDING[rules.shed]
        share = share_to_shed(
            state.share > 0, smoothed, rules.tau1, rules.base, power, rules.margin
        )
    seen = Watch(state.high_since_us, state.low_since_us)
    seen, wanted = watch(seen, at_us, m, tau, rules)
    workers, zeta = within(wanted, rules.least, rules.most), rules.block_size
    if rules.blocks == "adaptive":
        zeta = choose_block_size(tau * m / workers, rules.capacity, workers, rules.tau1, zeta)
    after = LoadState(at_us, workers, share, smoothed, *seen)
    return after, Decision(measured.epoch + 1, workers, zeta, share)
