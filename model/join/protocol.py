"""Every behaviour of a small chain: the states that the explorer walks through.

Source: docs/join.md, sections 3 and 10.

Rules of this file:

* It carries: what may happen is decided by ``chain.TABLE`` alone.
* What was emitted is part of the state here, each pair as one bit, so that a pair that comes out
  twice or never is seen in the state.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from model.join import chain
from model.join.network import FIFO, Network
from model.join.rules import NUMBERED, Rules
from model.join.state import Action, Setup, Transition, initial
from model.join.state import State as ChainState
from model.join.worker import Listed, Pair
from model.vocabulary.join import NO_WATERMARK_US

Table = Mapping[str, Transition]


@dataclass(frozen=True, slots=True)
class Scope:
    """How much is explored: few tuples, few workers, one predicate that always holds."""

    name: str
    r_us: tuple[int, ...]
    """Event times of R in order of admission."""
    s_us: tuple[int, ...]
    workers: int = 2
    block_size: int = 2
    credit: int = 2
    window_us: int = 1_000
    lateness_us: int | None = None
    network: Network = FIFO
    rules: Rules = NUMBERED
    free: bool = True
    empty_blocks: bool = False
    ends: bool = False
    changes: int = 0
    table: Table | None = None

    def is_result(self, pair: Pair) -> bool:
        """Whether a pair is a result."""
        return abs(self.r_us[pair[0]] - self.s_us[pair[1]]) <= self.window_us

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """All pairs; a pair's bit is its position."""
        return tuple((r, s) for r in range(len(self.r_us)) for s in range(len(self.s_us)))

    def setup(self) -> Setup:
        """The chain of the scope."""
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
    """... and emitted again."""


class Protocol:
    """The actions of one scope."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.setup = scope.setup()
        self.n_s = len(scope.s_us)

    def initial(self) -> State:
        """Nothing has been admitted."""
        return State(initial(self.setup))

    def actions(self, state: State) -> Iterator[tuple[Action, State]]:
        """Everything that may happen next, and where it leads."""
        setup, before = self.setup, state.chain
        for action in chain.possible(setup, before):
            after, pairs = chain.after(setup, before, action)
            once, twice = state.once, state.twice
            for r, s in pairs:
                bit = 1 << (r * self.n_s + s)
                twice |= once & bit
                once |= bit
            yield action, State(after, once, twice)
