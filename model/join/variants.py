"""Protocols that look right and are not: literal readings of the source, and planted bugs.

Source: docs/join.md, section 3; S2J for literal readings.

Rules of this file:

* A variant changes a scope: it replaces a decision, the network, or a transition of the table, and
  nothing else. Its home is the scope in which the explorer finds it.
* ``promise`` is the claim that breaks first.
* A planted bug is explored in its home, until its promise is broken.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain as chained

from model.checking.explorer import Exploration
from model.checking.explorer import explore as search
from model.join import chain, live
from model.join.rules import FIFO, NUMBERED, Setup, SetupChanges, Step, Transition
from model.join.run import run
from model.join.scopes import SCOPES, Scope, State, machine_of
from model.join.state import NO_PAIRS, UNORDERED, Action, ChainState, lanes, with_lane, with_worker
from model.join.state_claims import LOST, STUCK, TWICE, claims_of
from model.vocabulary import Event, JoinConfig, System, Workload
from model.vocabulary.join import And, R, S

PAPER = "S2J, read literally"
PLANTED = "planted bug"


def changes_of(scope: Scope) -> SetupChanges:
    """Return the fields of a scope that change the chain of a run."""
    return SetupChanges(
        rules=scope.rules,
        network=scope.network,
        free=scope.free,
        empty_blocks=scope.empty_blocks,
        changes=scope.changes,
        table=scope.table,
    )


@dataclass(frozen=True, slots=True)
class Variant:
    """A protocol that breaks a promise."""

    name: str
    home: str
    """Name of the scope in which the explorer finds the variant."""
    promise: str
    mistake: str
    source: str
    corrected: str
    """The rule that keeps the promise."""
    changes: SetupChanges
    """Fields of the scope that the mistake replaces."""
    seed: int = 0
    """Seed with which a single run of the example breaks the promise."""

    def spoil(self, scope: Scope) -> Scope:
        """Return a scope with the mistake in it."""
        return replace(scope, **self.changes)

    @property
    def scope(self) -> Scope:
        """The home scope with the mistake."""
        return self.spoil(SCOPES[self.home])

    @property
    def example(self) -> Workload:
        """The tuples of the home scope as a workload."""
        scope = self.scope
        config = JoinConfig(
            scope.window_us,
            (("all", And()),),
            scope.workers,
            scope.block_size,
            scope.credit,
            scope.lateness_us,
        )
        times = chained(((ts, R) for ts in scope.r_us), ((ts, S) for ts in scope.s_us))
        arrivals = tuple(
            Event(seq, seq, "a", ts_us, 0.0, 100, stream)
            for seq, (ts_us, stream) in enumerate(times)
        )
        return Workload("join", arrivals, config.to_json(), seed=self.seed, name=self.name)

    def make_system(self) -> System:
        """Return the reference run with the mistake in it."""
        return partial(run, changes=changes_of(self.scope))


# -------------------------------------------------------------------- decisions and transitions


def _with_transition(
    name: str,
    guard: Callable[[Setup, ChainState], Iterator[Action]],
    effect: Callable[[Setup, ChainState, Action], Step],
) -> Mapping[str, Transition]:
    """Return the table with one transition added or replaced."""
    return {**chain.TABLE, name: Transition(guard, effect)}


def _can_forget(_setup: Setup, state: ChainState) -> Iterator[Action]:
    """Yield the workers that have a copy of S."""
    for at, worker in enumerate(state.workers):
        if worker.s.copies:
            yield Action("forgets a copy of", at, S)


def _forget(_setup: Setup, state: ChainState, action: Action) -> Step:
    """Delete the oldest copy of S."""
    worker = state.workers[action.worker]
    lane = worker.s._replace(copies=worker.s.copies[1:])
    return with_worker(state, action.worker, with_lane(worker, S, lane)), NO_PAIRS


# -------------------------------------------------------------------------------------- the table

VARIANTS: Mapping[str, Variant] = {
    variant.name: variant
    for variant in (
        Variant(
            "no_copy",
            "fifo",
            LOST,
            "A block that was sent is no longer joined.",
            PLANTED,
            "Blocks of R are joined with the copies of S blocks on their way.",
            {"rules": replace(FIFO, visible=lambda _worker, _block: ())},
        ),
        Variant(
            "both_visible",
            "fifo",
            TWICE,
            "Copies of both streams take part in joins until they are acknowledged.",
            PAPER,
            "Only copies of one stream are visible.",
            {
                "rules": replace(
                    FIFO, visible=lambda worker, block: lanes(worker, block.stream)[1].copies
                )
            },
        ),
        Variant(
            "deleted_early",
            "fifo",
            LOST,
            "A copy is deleted before its acknowledgement has come.",
            PLANTED,
            "A copy stays until it is acknowledged.",
            {"table": _with_transition("forgets a copy of", _can_forget, _forget)},
            seed=1,
        ),
        Variant(
            "no_numbers",
            "fifo",
            TWICE,
            "Blocks carry no numbers, and channels do not keep order.",
            PLANTED,
            "Over channels that do not keep order, blocks carry numbers and what they have seen.",
            {"network": UNORDERED},
            seed=4,
        ),
        Variant(
            "seen_renewed",
            "cut",
            LOST,
            "A block that is sent again says what its sender has seen by now.",
            PLANTED,
            "A block is sent again as it was.",
            {
                "rules": replace(
                    NUMBERED,
                    resent=lambda copy, worker: copy.block._replace(
                        seen=lanes(worker, copy.block.stream)[1].received
                    ),
                )
            },
            seed=45,
        ),
        Variant(
            "balance_alone",
            "balanced",
            STUCK,
            "Blocks are sent to balance the load, and for no other reason.",
            PAPER,
            "A tuple that the other stream has moved past is sent on whatever the loads.",
            {"rules": replace(NUMBERED, forces=False), "block_size": 1},
        ),
        Variant(
            "local_timer",
            "drop",
            LOST,
            "A tuple expires by the progress of its own stream at its worker.",
            PAPER,
            "A tuple is dropped by the watermark of the other stream that has passed its worker.",
            {
                "rules": replace(
                    NUMBERED, drop_wm_us=lambda worker, stream: lanes(worker, stream)[0].wm_us
                )
            },
            seed=1,
        ),
        Variant(
            "silent_merge",
            "elastic",
            LOST,
            "Two workers become one, and tuples between them never meet.",
            PLANTED,
            "A merge joins R of the left worker with S of the right one.",
            {
                "table": _with_transition(
                    "merge", chain.can_merge, lambda *given: (chain.merge(*given)[0], NO_PAIRS)
                )
            },
            seed=24,
        ),
        Variant(
            "opened_at_once",
            "adding",
            LOST,
            "A worker is added at the end, and R goes there at once.",
            PLANTED,
            "The new boundary stays closed until the old end has read what was sent to it before.",
            {"table": {**live.ADDING, "forward": chain.TABLE["forward"]}},
            seed=1,
        ),
        Variant(
            "redirected_at_once",
            "removing",
            LOST,
            "The source of S is redirected while the leaving worker still holds R.",
            PLANTED,
            "R of the leaving worker expires first.",
            {
                "table": {
                    **live.REMOVING,
                    "gets no more S": live.change("gets no more S", live.LEAVING, live.REDIRECTED),
                }
            },
            seed=3,
        ),
        Variant(
            "floor_within_an_epoch",
            "silent",
            LOST,
            "The watermark of a silent stream moves on at any time, not only between epochs.",
            PLANTED,
            "A floor rises between epochs: what is let in of an epoch is judged by one floor.",
            {"table": live.with_silence(S, 7, is_too_early=True)},
            seed=15,
        ),
    )
}


def explore(scope: str, variant: str | None = None) -> Exploration[State, Action]:
    """Search a scope; with a variant, until the promise that it breaks is broken.

    Raises KeyError for an unknown name.
    """
    chosen = SCOPES[scope]
    if variant is None:
        return search(machine_of(chosen), claims_of(chosen))
    bug = VARIANTS[variant]
    spoilt = bug.spoil(chosen)
    return search(machine_of(spoilt), claims_of(spoilt), promise=bug.promise)
