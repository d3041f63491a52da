"""Load decisions and clocks of silent streams, which the driver updates between two epochs.

Source: docs/join.md, sections 14 and 2.

Rules of this file:

* ``Chain._conclude`` in ``chain.py`` calls :func:`decide` after each epoch.
* Every function is pure: it sees no time of day, no store and no cluster.
* The configuration of an epoch carries the decision in force and no other: see :func:`config_of`.
* Only a stream's source worker knows its present progress; a clock has that of the last epoch.
"""

from dataclasses import replace
from math import floor
from typing import NamedTuple

from model.vocabulary import JoinConfig
from model.vocabulary.join import NO_WATERMARK_US, Decision, R, S
from model.vocabulary.join_load import LoadRules, LoadState, Measured
from spark_impl.join.matching import Counts

# ---------------------------------------------------------------------------------------- decisions


def begin(rules: LoadRules, workers: int) -> LoadState:
    """Return the state before the first measurement of a chain that begins with ``workers``."""
    return LoadState(0, _bring_into_range(rules, workers), 0.0, 0.0)


def decide(rules: LoadRules, state: LoadState, measured: Measured) -> tuple[LoadState, Decision]:
    """Return the state after an epoch, and the decision for the next one."""
    tau = mean_utilisation(measured)
    at_us = state.at_us + measured.elapsed_us
    smoothed = state.smoothed + rules.smoothing * (tau - state.smoothed)
    high_since_us = _since(state.high_since_us, at_us, tau > rules.tau2)
    low_since_us = _since(state.low_since_us, at_us, tau < rules.tau0)
    workers = state.workers
    if _has_lasted(high_since_us, at_us, rules.out_after_us) or _has_lasted(
        low_since_us, at_us, rules.in_after_us
    ):
        workers = max(1, floor(workers * tau / rules.aim + 0.5))
        high_since_us = low_since_us = None
    # Even if nothing asks for a change: a chain may be opened again with another range.
    workers = _bring_into_range(rules, workers)
    share = share_to_shed(rules, smoothed, state.share > 0)
    after = LoadState(at_us, workers, share, smoothed, high_since_us, low_since_us)
    block_size = choose_block_size(rules, tau * state.workers / workers, workers)
    return after, Decision(measured.epoch + 1, workers, block_size, share)


def mean_utilisation(measured: Measured) -> float:
    """Return tau, the mean utilisation of the workers, computed with a single rounding."""
    elapsed_us = measured.elapsed_us
    busy_us = sum(min(each, elapsed_us) for each in measured.busy_us)
    return busy_us / (len(measured.busy_us) * elapsed_us)


def share_to_shed(rules: LoadRules, smoothed: float, is_shedding: bool) -> float:
    """Return the share to shed at a smoothed utilisation; ``is_shedding``: some was shed before."""
    if rules.shed == "no":
        return 0.0
    if smoothed <= rules.tau1:
        is_kept = is_shedding and smoothed > rules.tau1 - rules.margin
        return rules.base if is_kept else 0.0
    x = (smoothed - rules.tau1) / (1 - rules.tau1)
    # A product, because a power may be rounded elsewhere.
    return rules.base + (1 - rules.base) * (x * x if rules.shed == "quadratic" else x)


def choose_block_size(rules: LoadRules, tau: float, workers: int) -> int:
    """Return the block size (zeta in the docs) at mean utilisation ``tau`` of a chain.

    :func:`decide` calls it for a chain with ``load``; another one keeps the ``block_size`` that the
    user gave to ``ChainJoin``, which is the largest one here. ``Worker.forward`` cuts blocks of
    this size; only the last one of a call is smaller.
    """
    if rules.blocks == "fixed" or workers == 1:
        return rules.block_size
    wanted = floor(2 * rules.capacity * (rules.tau1 - tau) / (workers - 1))
    return max(1, min(wanted, rules.block_size))


def find_in_force(config: JoinConfig, epoch: int) -> Decision | None:
    """Return the decision of ``config`` that is in force in an epoch; ``None``: there is none."""
    past = [each for each in config.decisions if each.epoch <= epoch]
    return past[-1] if past else None


def config_of(config: JoinConfig, decision: Decision | None) -> JoinConfig:
    """Return the configuration of an epoch in which this decision, and no other, is in force."""
    if decision is None:
        return replace(config, decisions=())
    return replace(
        config,
        workers=decision.workers,
        block_size=decision.block_size,
        decisions=(decision,),
    )


def share_of(config: JoinConfig) -> float:
    """Return the share to shed, from the configuration of an epoch."""
    return config.decisions[0].share if config.decisions else 0.0


def _since(before_us: int | None, at_us: int, holds: bool) -> int | None:
    """Return the time since when a condition has held, or ``None`` if it does not hold now."""
    if not holds:
        return None
    return at_us if before_us is None else before_us


def _has_lasted(since_us: int | None, at_us: int, wanted_us: int) -> bool:
    return since_us is not None and at_us - since_us >= wanted_us


def _bring_into_range(rules: LoadRules, workers: int) -> int:
    return max(rules.least, min(workers, rules.most))


# ----------------------------------------------------------------------------------- silent streams


NO_FLOORS = Counts(NO_WATERMARK_US, NO_WATERMARK_US)
"""The floors of streams that were never idle."""


class StreamClock(NamedTuple):
    """The progress of one stream."""

    t_max_us: int = NO_WATERMARK_US
    """Largest admitted event time."""
    mark_us: int | None = None
    """Largest admitted event time of the other stream when this one last sent anything."""
    floor_us: int = NO_WATERMARK_US
    """Least watermark of the stream, which rises while the stream is idle."""

    def watermark_us(self, lateness_us: int | None) -> int:
        """Return the watermark of the stream."""
        if lateness_us is None or self.t_max_us == NO_WATERMARK_US:
            return self.floor_us
        return max(self.t_max_us - lateness_us, self.floor_us)


class Clocks(NamedTuple):
    """The progress of both streams."""

    r: StreamClock = StreamClock()
    s: StreamClock = StreamClock()

    @property
    def floors(self) -> Counts:
        """The floor of each stream."""
        return Counts(self.r.floor_us, self.s.floor_us)

    def held_by(self, lateness_us: int | None) -> str:
        """Return the stream with the lower watermark, or R if both are equal."""
        r_us, s_us = (each.watermark_us(lateness_us) for each in self)
        return R if r_us <= s_us else S


def begin_epoch(config: JoinConfig, clocks: Clocks) -> Clocks:
    """Return the clocks at the beginning of an epoch: floors of idle streams rise."""
    r, s = clocks
    return Clocks(_with_floor(config, r, s.t_max_us), _with_floor(config, s, r.t_max_us))


def _with_floor(config: JoinConfig, clock: StreamClock, other_us: int) -> StreamClock:
    idle_us = config.idle_after_us
    if idle_us is None or config.lateness_us is None or clock.mark_us is None:
        return clock
    if other_us - clock.mark_us <= idle_us:
        return clock
    followed_us = max(other_us - config.lateness_us - idle_us, NO_WATERMARK_US)
    return clock._replace(floor_us=max(clock.floor_us, followed_us))


def end_epoch(config: JoinConfig, clocks: Clocks, t_max_us: Counts, accepted: Counts) -> Clocks:
    """Return the clocks after an epoch that began with ``clocks``.

    ``t_max_us`` is the largest admitted event time of each stream, ``accepted`` the number of its
    arrivals in the epoch that were neither shed nor without a finite value.
    """
    marked = config.idle_after_us is not None

    def after(clock: StreamClock, own_us: int, other_us: int, came: int) -> StreamClock:
        mark_us = clock.mark_us if marked else None
        if marked and (came or mark_us is None):
            mark_us = None if other_us == NO_WATERMARK_US else other_us
        return StreamClock(own_us, mark_us, clock.floor_us)

    r_us, s_us = t_max_us
    return Clocks(after(clocks.r, r_us, s_us, accepted.r), after(clocks.s, s_us, r_us, accepted.s))
