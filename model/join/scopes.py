"""Small scopes of the protocol for exhaustive exploration.

Source: docs/join.md, sections 3 to 7 and 10.

Rules of this file:

* Only ``chain.TABLE`` decides which actions are possible.
* Emitted pairs are part of the explored state, one bit a pair: a pair that comes out twice or never
  is seen in the state.
* ``EVERYDAY`` scopes are explored unless another one is asked for; tests explore others at night.
* Free scopes let every worker send any block at any time, which covers every way to balance the
  load. In ``balanced`` scopes blocks are sent by section 5 alone, which shows that this is enough
  for everything to end.
* R tuples are r0, r1, ... by rank, S tuples s0, s1, ....
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from model.checking.explorer import Machine
from model.join import chain, live
from model.join.predicates import holds
from model.join.rules import FIFO, NUMBERED, Rules, Setup, Transition, initial
from model.join.state import (
    CUT,
    IN_ORDER,
    REPEATING,
    UNORDERED,
    Action,
    ChainState,
    Listed,
    Network,
    Pair,
    Ranks,
)
from model.vocabulary import Event
from model.vocabulary.join import NO_WATERMARK_US, Apart, Equi, R, S

Table = Mapping[str, Transition]


@dataclass(frozen=True, slots=True)
class Scope:
    """A small chain to explore: few tuples, few workers, mostly a predicate that always holds."""

    name: str
    r_us: tuple[int, ...]
    """Event times of R in order of admission."""
    s_us: tuple[int, ...]
    workers: int = 2
    block_size: int = 2
    credit: int = 2
    window_us: int = 1_000
    lateness_us: int | None = None
    network: Network = IN_ORDER
    rules: Rules = NUMBERED
    free: bool = True
    empty_blocks: bool = False
    ends: bool = False
    changes: int = 0
    table: Table | None = None
    queries: Callable[[int, int], int] | None = None
    """Number of queries whose predicates hold for a pair; without it, one query pairs all."""

    def is_result(self, pair: Pair) -> bool:
        """Return whether a pair is a result."""
        is_near = abs(self.r_us[pair[0]] - self.s_us[pair[1]]) <= self.window_us
        return is_near and (self.queries is None or self.queries(*pair) > 0)

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """All pairs; a pair's bit is its position."""
        return tuple((r, s) for r in range(len(self.r_us)) for s in range(len(self.s_us)))

    def setup(self) -> Setup:
        """Return the chain of the scope."""
        content = Listed(self.r_us, self.s_us, lambda r, s: self.is_result((r, s)))
        wm_us = (_watermarks(self.r_us, self.lateness_us), _watermarks(self.s_us, self.lateness_us))
        return Setup(
            self.workers,
            self.window_us,
            content,
            wm_us,
            self.block_size,
            self.credit,
            self.rules,
            self.network,
            self.free,
            self.empty_blocks,
            self.ends,
            self.changes,
            self.table,
        )


def _watermarks(ts_us: tuple[int, ...], lateness_us: int | None) -> tuple[int, ...]:
    if lateness_us is None:
        return (NO_WATERMARK_US,) * len(ts_us)
    return tuple(max(ts_us[: n + 1]) - lateness_us for n in range(len(ts_us)))


class State(NamedTuple):
    """A chain with what it has emitted."""

    chain: ChainState
    once: int = 0
    """Bits of the pairs that were emitted."""
    twice: int = 0
    """Bits of the pairs that were emitted again."""


# --------------------------------------------------------------------------------------- scopes


def _same(n: int) -> tuple[int, ...]:
    """Return the event times of n tuples that all match."""
    return (0,) * n


_at_once = partial(Scope, window_us=2, lateness_us=0, credit=1)
"""Make a scope with watermarks that lie at the latest tuples."""
_ending = partial(Scope, r_us=(0, 9), s_us=(1, 9), window_us=2, credit=1, ends=True)
"""Make a scope whose streams end."""


def _on_columns(r: int, s: int) -> int:
    """Return how many of two queries, each on a column of its own, have a pair as a result."""
    columns = (("pm25", "number"), ("site", "text"))
    one = Event(r, r, "a", 0, 0.0, 0, R, ((5.0, "a"), (None, "b"))[r])
    other_one = Event(s, s, "a", 0, 0.0, 0, S, ((9.0, "b"), (1.0, "a"))[s])
    queries = (Apart("pm25", 3.0), Equi("site"))
    return sum(holds(each, one, other_one, columns, columns) for each in queries)


SCOPES: Mapping[str, Scope] = {
    scope.name: scope
    for scope in (
        Scope("fifo", _same(3), _same(3), rules=FIFO, credit=3),
        Scope("numbered", _same(3), _same(3)),
        Scope("three", _same(2), _same(2), rules=FIFO, workers=3),
        Scope("unordered", _same(3), _same(3), network=UNORDERED),
        Scope("repeating", _same(2), _same(2), network=REPEATING),
        Scope("cut", _same(2), _same(2), network=CUT),
        Scope("columns", _same(2), _same(2), network=UNORDERED, queries=_on_columns),
        _at_once("drop", (0, 3, 9), (1, 9)),
        _at_once("drop-unordered", (0, 3, 9), (1, 9), network=UNORDERED),
        _ending("flush", empty_blocks=True),
        _ending("balanced", lateness_us=0, free=False),
        _ending("balanced-unordered", lateness_us=0, free=False, network=UNORDERED),
        Scope("balanced-three", _same(2), _same(2), workers=3, credit=1, free=False, ends=True),
        Scope("elastic", _same(2), _same(2), rules=FIFO, changes=1),
        Scope(
            "elastic-drop",
            (0, 9),
            (3,),
            window_us=3,
            lateness_us=0,
            credit=1,
            rules=FIFO,
            changes=1,
        ),
        Scope("elastic-twice", _same(2), _same(1), rules=FIFO, changes=2),
        Scope("adding", _same(2), _same(2), workers=1, rules=FIFO, table=live.ADDING),
        Scope(
            "removing",
            (0, 9),
            (9, 20),
            window_us=2,
            lateness_us=0,
            rules=FIFO,
            table=live.REMOVING,
        ),
        _at_once("silent", (0, 9), (1,), table=live.with_silence(S, 7)),
        Scope("adding-large", _same(2), _same(2), rules=FIFO, table=live.ADDING),
        Scope("fifo-large", _same(4), _same(4), rules=FIFO, credit=4),
        Scope("numbered-large", _same(4), _same(4)),
        Scope("three-numbered", _same(2), _same(2), workers=3),
        Scope("four", _same(2), _same(2), rules=FIFO, workers=4, credit=1),
        _ending("flush-unordered", empty_blocks=True, network=UNORDERED),
        Scope("cut-large", _same(3), _same(3), network=CUT),
        Scope("elastic-large", _same(2), _same(2), rules=FIFO, changes=2),
        _ending("balanced-large", lateness_us=0, free=False, workers=3),
    )
}
EVERYDAY = (
    "adding",
    "cut",
    "columns",
    "removing",
    "silent",
    "fifo",
    "drop",
    "numbered",
    "balanced",
    "repeating",
    "drop-unordered",
    "flush",
    "balanced-unordered",
    "balanced-three",
    "elastic",
    "elastic-drop",
    "elastic-twice",
    "adding-large",
    "three",
    "unordered",
)

# ---------------------------------------------------------------------------------- descriptions


def _describe_state(scope: Scope, state: State) -> str:
    """Return a phrase about the tuples in each worker and the emitted pairs."""
    parts = []
    for number, worker in enumerate(state.chain.workers):
        stored = [_names(R, worker.r.store)] * bool(worker.r.store)
        stored += [_names(S, worker.s.store)] * bool(worker.s.store)
        parts += [f"worker {number} has {' and '.join(stored)}"] * bool(stored)
    once, twice = (
        " ".join(f"(r{r} s{s})" for bit, (r, s) in enumerate(scope.pairs) if mask >> bit & 1)
        for mask in (state.once, state.twice)
    )
    out = f"out came {once}" if once else "no pair came out"
    return ", ".join([*parts, f"{out}, {twice} again" if twice else out])


def _names(stream: str, ranks: Ranks) -> str:
    return " ".join(f"{stream.lower()}{rank}" for rank in ranks)


def _describe_action(action: Action) -> str:
    where = f" at worker {action.worker}" if action.worker >= 0 else ""
    size = f" of {action.n}" if action.what == "forward" else ""
    return f"{action.what} {action.stream}".rstrip() + size + where


def machine_of(scope: Scope) -> Machine[State, Action]:
    """Return the transition system of a scope, for the explorer."""
    setup, n_s = scope.setup(), len(scope.s_us)

    def actions(state: State) -> Iterator[tuple[Action, State]]:
        before = state.chain
        for action in chain.possible_actions(setup, before):
            after, pairs = chain.after(setup, before, action)
            once, twice = state.once, state.twice
            for r, s in pairs:
                bit = 1 << (r * n_s + s)
                twice |= once & bit
                once |= bit
            yield action, State(after, once, twice)

    return Machine(
        (State(initial(setup)),),
        actions,
        _describe_action,
        lambda state: _describe_state(scope, state),
    )
