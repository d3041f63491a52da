"""The control of a chain: from measurements to decisions (docs/join.md, section 14).

Rules of this file:

* Every function is pure. A clock, a store or a cluster is nowhere in here.
* The configuration of an epoch carries the decision in force, alone: see :func:`config_of`.
"""

from dataclasses import replace
from math import floor

from model.vocabulary import JoinConfig
from model.vocabulary.join import Decision
from model.vocabulary.join_load import LoadRules, LoadState, Measured


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


def utilisations(measured: Measured) -> tuple[float, ...]:
    """Return the utilisation of every worker."""
    return tuple(min(each / measured.elapsed_us, 1.0) for each in measured.busy_us)


def mean_utilisation(measured: Measured) -> float:
    """Return tau, the mean utilisation of the workers, rounded once."""
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
    """Return the block size zeta(tau) of a chain of ``workers``."""
    if rules.blocks == "fixed" or workers == 1:
        return rules.block_size
    wanted = floor(2 * rules.capacity * (rules.tau1 - tau) / (workers - 1))
    return max(1, min(wanted, rules.block_size))


def find_in_force(config: JoinConfig, epoch: int) -> Decision | None:
    """Return the decision of ``config`` that is in force in an epoch; ``None``: there is none."""
    past = [each for each in config.decisions if each.epoch <= epoch]
    return past[-1] if past else None


def config_of(config: JoinConfig, decision: Decision | None) -> JoinConfig:
    """Return the configuration of an epoch: what a decision says, and that decision alone."""
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
    """Return the first moment since which a condition has held."""
    if not holds:
        return None
    return at_us if before_us is None else before_us


def _has_lasted(since_us: int | None, at_us: int, wanted_us: int) -> bool:
    return since_us is not None and at_us - since_us >= wanted_us


def _bring_into_range(rules: LoadRules, workers: int) -> int:
    return max(rules.least, min(workers, rules.most))
