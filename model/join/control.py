"""Decisions of a chain that follows its load, and what they ask of an epoch.

Source: docs/join.md, section 14; ``load`` has the rules of sections 7 and 8.

Rules of this file:

* Pure functions: a decision depends on rules, state and measurement, a draw on the arrival alone.
* Formulas are rounded as they are written, so that another controller gives the same floats.
"""

from bisect import bisect_right
from operator import attrgetter

from model.join import load
from model.vocabulary import JoinConfig
from model.vocabulary.join import STREAMS, Decision
from model.vocabulary.join_load import SHEDDING, LoadRules, LoadState, Measured

_WORD = (1 << 64) - 1

# --------------------------------------------------------------------------- a decision in force


def decision_at(config: JoinConfig, epoch: int) -> Decision:
    """Return the decision in force in an epoch; before the first one, the configuration's."""
    n = bisect_right(config.decisions, epoch, key=attrgetter("epoch"))
    if n:
        return config.decisions[n - 1]
    return Decision(epoch, config.workers, config.block_size, 0.0)


def draw(stream: str, seq: int) -> float:
    """Return the draw of an arrival, in [0, 1): it is shed if the share is larger (SplitMix64)."""
    z = (2 * seq + STREAMS.index(stream) + 1) * 0x9E3779B97F4A7C15 & _WORD
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & _WORD
    z = (z ^ z >> 27) * 0x94D049BB133111EB & _WORD
    return float((z ^ z >> 31) >> 11) / (1 << 53)


# --------------------------------------------------------------------------------- the controller


def start(rules: LoadRules, workers: int) -> LoadState:
    """Return the state before the first measurement of a chain with so many workers."""
    return LoadState(0, load.within(workers, rules.least, rules.most), 0.0, 0.0)


def utilisation(measured: Measured) -> float:
    """Return tau, the mean share of its time in which a worker was at work; rounded once."""
    busy_us = sum(min(each, measured.elapsed_us) for each in measured.busy_us)
    return busy_us / (len(measured.busy_us) * measured.elapsed_us)


def decide(rules: LoadRules, state: LoadState, measured: Measured) -> tuple[LoadState, Decision]:
    """Return the state after an epoch, and the decision for the next one."""
    tau, m, at_us = utilisation(measured), state.workers, state.at_us + measured.elapsed_us
    smoothed = state.smoothed + rules.smoothing * (tau - state.smoothed)
    share = 0.0
    if rules.shed != "no":
        power = SHEDDING[rules.shed]
        share = load.share_to_shed(
            state.share > 0, smoothed, rules.tau1, rules.base, power, rules.margin
        )
    seen = load.Watch(state.high_since_us, state.low_since_us)
    seen, wanted = load.watch(seen, at_us, m, tau, rules)
    workers, zeta = load.within(wanted, rules.least, rules.most), rules.block_size
    if rules.blocks == "adaptive":
        zeta = load.block_size(tau * m / workers, rules.capacity, workers, rules.tau1, zeta)
    after = LoadState(at_us, workers, share, smoothed, *seen)
    return after, Decision(measured.epoch + 1, workers, zeta, share)
