"""Small scopes of the protocol, for exhaustive exploration.

Source: docs/join.md, sections 3 to 7 and 10.

Rules of this file:

* ``EVERYDAY`` scopes are for every change, the others for the night.
* Free scopes let every worker send any block at any time, which covers every way to balance the
  load; in ``balanced`` scopes blocks are sent by section 5 alone, which shows that this is enough
  for everything to end.
"""

from collections.abc import Mapping

from model.checking.explorer import Machine
from model.join import live, network
from model.join.chart import emitted, named
from model.join.protocol import Protocol, Scope, State
from model.join.rules import FIFO
from model.join.state import Action
from model.vocabulary.join import R, S

# --------------------------------------------------------------------------------------- scopes


def _same(n: int) -> tuple[int, ...]:
    """Event times of n tuples that all match."""
    return (0,) * n


SCOPES: Mapping[str, Scope] = {
    scope.name: scope
    for scope in (
        Scope("fifo", _same(3), _same(3), rules=FIFO, credit=3),
        Scope("numbered", _same(3), _same(3)),
        Scope("three", _same(2), _same(2), rules=FIFO, workers=3),
        Scope("unordered", _same(3), _same(3), network=network.UNORDERED),
        Scope("repeating", _same(2), _same(2), network=network.REPEATING),
        Scope("cut", _same(2), _same(2), network=network.CUT),
        Scope("drop", (0, 3, 9), (1, 9), window_us=2, lateness_us=0, credit=1),
        Scope(
            "drop-unordered",
            (0, 3, 9),
            (1, 9),
            window_us=2,
            lateness_us=0,
            credit=1,
            network=network.UNORDERED,
        ),
        Scope("flush", (0, 9), (1, 9), window_us=2, credit=1, empty_blocks=True, ends=True),
        Scope(
            "balanced", (0, 9), (1, 9), window_us=2, lateness_us=0, credit=1, free=False, ends=True
        ),
        Scope(
            "balanced-unordered",
            (0, 9),
            (1, 9),
            window_us=2,
            lateness_us=0,
            credit=1,
            network=network.UNORDERED,
            free=False,
            ends=True,
        ),
        Scope("balanced-three", _same(2), _same(2), workers=3, credit=1, free=False, ends=True),
        Scope("elastic", _same(2), _same(2), rules=FIFO, changes=1),
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
        Scope("adding-large", _same(2), _same(2), rules=FIFO, table=live.ADDING),
        Scope("fifo-large", _same(4), _same(4), rules=FIFO, credit=4),
        Scope("numbered-large", _same(4), _same(4)),
        Scope("three-numbered", _same(2), _same(2), workers=3),
        Scope("four", _same(2), _same(2), rules=FIFO, workers=4, credit=1),
        Scope(
            "flush-unordered",
            (0, 9),
            (1, 9),
            window_us=2,
            credit=1,
            network=network.UNORDERED,
            empty_blocks=True,
            ends=True,
        ),
        Scope("cut-large", _same(3), _same(3), network=network.CUT),
        Scope("elastic-large", _same(2), _same(2), rules=FIFO, changes=2),
        Scope(
            "balanced-large",
            (0, 9),
            (1, 9),
            workers=3,
            window_us=2,
            lateness_us=0,
            credit=1,
            free=False,
            ends=True,
        ),
    )
}
EVERYDAY = (
    "adding",
    "cut",
    "removing",
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
    "three",
    "unordered",
)

# ---------------------------------------------------------------------------------- descriptions


def describe_state(scope: Scope, state: State) -> str:
    """What there is, as a phrase."""
    parts = []
    for number, worker in enumerate(state.chain.workers):
        stored = [named(R, worker.r.store)] * bool(worker.r.store)
        stored += [named(S, worker.s.store)] * bool(worker.s.store)
        parts += [f"worker {number} has {' and '.join(stored)}"] * bool(stored)
    out = emitted(scope, State(state.chain), state)
    return ", ".join([*parts, f"out came {out}" if out else "no pair came out"])


def _describe_action(action: Action) -> str:
    where = f" at worker {action.worker}" if action.worker >= 0 else ""
    size = f" of {action.n}" if action.what == "forward" else ""
    return f"{action.what} {action.stream}".rstrip() + size + where


def machine_of(scope: Scope) -> Machine[State, Action]:
    """The transition system of a scope."""
    protocol = Protocol(scope)
    return Machine(
        (protocol.initial(),),
        protocol.actions,
        _describe_action,
        lambda state: describe_state(scope, state),
    )
