"""The promises about every state of a small chain.

Source: docs/join.md, section 10.

Rules of this file:

* A claim looks at one state. A user would notice what it says: a pair twice, a pair lost, a chain
  that is stuck.
* A pair is named by ranks: (r2, s0).
"""

from collections.abc import Iterator
from functools import partial

from model.checking.explorer import StateClaim, always, no_deadlock, sometimes
from model.join.live import ADDED, LEAVING, LEFT, OPEN
from model.join.scopes import Scope, State
from model.join.state import Block, ChainState, Pair, Ranks, is_quiet
from model.vocabulary.join import R, S

GONE = -1
TWICE = "no pair twice"
LOST = "no pair lost"
STUCK = "no deadlock"
COMPLETE = "complete in the end"

# -------------------------------------------------------------------------------------- positions
# Worker i is position 2i, the way over boundary i is 2i + 1.


def _under_way(scope: Scope, chain: ChainState, at: int, stream: str) -> Iterator[Block]:
    """Yield the blocks of a stream that were sent over a boundary and not received."""
    if not scope.rules.numbered:
        for message in (chain.right if stream == R else chain.left)[at]:
            if isinstance(message, Block) and message.stream == stream:
                yield message
        return
    sender, receiver = at + (stream == S), at + (stream == R)
    copies, received = (
        (chain.workers[sender].r.copies, chain.workers[receiver].r.received)
        if stream == R
        else (chain.workers[sender].s.copies, chain.workers[receiver].s.received)
    )
    for copy in copies:
        if copy.block.number > received:
            yield copy.block


def _places(scope: Scope, chain: ChainState, stream: str) -> list[tuple[int, Ranks]]:
    stores = [
        (2 * at, worker.r.store if stream == R else worker.s.store)
        for at, worker in enumerate(chain.workers)
    ]
    ways = [
        (2 * at + 1, block.tuples)
        for at in range(len(chain.right))
        for block in _under_way(scope, chain, at, stream)
    ]
    return stores + ways + (_queues(scope, chain) if stream == S else [])


def _queues(scope: Scope, chain: ChainState) -> list[tuple[int, Ranks]]:
    """Return the tuples of S that wait to enter: they lie right of the worker they wait for."""
    new_end = scope.workers if chain.phase in (ADDED, OPEN) else scope.workers - 2
    return [(2 * scope.workers - 1, chain.queue), (2 * new_end + 1, chain.new_queue)]


def _positions(scope: Scope, chain: ChainState, stream: str) -> dict[int, int]:
    return {rank: position for position, ranks in _places(scope, chain, stream) for rank in ranks}


def _lost(scope: Scope, state: State) -> Iterator[Pair]:
    """Yield results that can no longer be emitted: r is gone, or stored with s not ahead of it."""
    chain = state.chain
    r_at, s_at = _positions(scope, chain, R), _positions(scope, chain, S)
    for bit, pair in enumerate(scope.pairs):
        r, s = pair
        if state.once >> bit & 1 or r >= chain.admitted_r or s >= chain.admitted_s:
            continue
        if not scope.is_result(pair):
            continue
        at, other_at = r_at.get(r, GONE), s_at.get(s, GONE)
        if at == GONE or (at % 2 == 0 and other_at <= at):
            yield pair


# ------------------------------------------------------------------------------------ the ending


def is_final(scope: Scope, state: State) -> bool:
    """Return whether a state without actions is complete."""
    chain = state.chain
    admitted = (chain.admitted_r, chain.admitted_s) == (len(scope.r_us), len(scope.s_us))
    if not admitted or not is_quiet(chain) or chain.ended < scope.ends:
        return False
    if chain.queue or chain.new_queue:
        return False
    if chain.phase == LEAVING:
        return not any(worker.s.store for worker in chain.workers[1:])
    if scope.ends:
        return not any(worker.r.store or worker.s.store for worker in chain.workers)
    return not any(w.r.store for w in chain.workers[:-1]) and not any(
        w.s.store for w in chain.workers[1:]
    )


def results_mask(scope: Scope) -> int:
    """Return the bits of the pairs that are results."""
    return sum(1 << bit for bit, pair in enumerate(scope.pairs) if scope.is_result(pair))


# ----------------------------------------------------------------------------------------- guards


def _blocks_pass(state: State) -> bool:
    return any(
        any(isinstance(m, Block) for m in right) and any(isinstance(m, Block) for m in left)
        for right, left in zip(state.chain.right, state.chain.left, strict=True)
    )


def _copy_waits(scope: Scope, state: State) -> bool:
    chain = state.chain
    return any(
        isinstance(message, Block) and scope.rules.visible(chain.workers[at + 1], message)
        for at, channel in enumerate(chain.right)
        for message in channel
    )


def _guards(scope: Scope) -> list[StateClaim[State]]:
    guards = [
        sometimes("blocks pass each other", _blocks_pass),
        sometimes("a copy waits for a block", partial(_copy_waits, scope)),
    ]
    network = scope.network
    if network.repeats:
        guards.append(sometimes("a message came twice", lambda s: not s.chain.repeats))
    if network.cuts:
        guards.append(sometimes("a connection was lost", lambda s: not s.chain.cuts))
    if scope.table is not None and "read MARK" in scope.table:
        guards.append(sometimes("a worker was added", lambda s: s.chain.phase == OPEN))
    if scope.table is not None and "read END" in scope.table:
        guards.append(sometimes("a worker has left", lambda s: s.chain.phase == LEFT))
    if scope.lateness_us is not None:
        guards.append(sometimes("a tuple was dropped before the end", _is_dropped_early))
    return guards


def _is_dropped_early(state: State) -> bool:
    chain = state.chain
    held = sum(len(worker.r.store) + len(worker.s.store) for worker in chain.workers)
    held += len(chain.queue) + len(chain.new_queue)
    return not chain.ended and is_quiet(chain) and held < chain.admitted_r + chain.admitted_s


# ----------------------------------------------------------------------------------------- claims


def _named(pair: Pair) -> str:
    return f"(r{pair[0]}, s{pair[1]})"


def _pairs(scope: Scope, mask: int) -> str:
    return " and ".join(_named(p) for bit, p in enumerate(scope.pairs) if mask >> bit & 1)


def claims_of(scope: Scope) -> list[StateClaim[State]]:
    """Return all claims of docs/join.md about a state, behind their guards."""
    guards = _guards(scope)
    names = tuple(guard.name for guard in guards)
    wanted = results_mask(scope)
    return [
        *guards,
        always(
            TWICE,
            lambda state: not state.twice,
            guards=names,
            explain=lambda state: f"{_pairs(scope, state.twice)} came out twice",
        ),
        always(
            LOST,
            lambda state: next(_lost(scope, state), None) is None,
            guards=names,
            explain=lambda state: (
                f"{' and '.join(map(_named, _lost(scope, state)))} cannot come out any more"
            ),
        ),
        no_deadlock(STUCK, lambda state: is_final(scope, state), guards=names),
        always(
            COMPLETE,
            lambda state: state.once == wanted or not is_final(scope, state),
            guards=names,
            explain=lambda state: f"{_pairs(scope, wanted & ~state.once)} never came out",
        ),
    ]
