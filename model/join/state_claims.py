"""The promises about every state of a small chain.

Source: docs/join.md, section 10.

Rules of this file:

* A claim looks at one state. Three claims (I1 to I3) are invariants of the protocol; a user would
  notice the others: a pair twice, a pair lost, a chain that is stuck.
* A pair is named by ranks: (r2, s0).
"""

from collections.abc import Callable, Iterator
from itertools import chain as chained

from model.checking.explorer import StateClaim, always, no_deadlock, sometimes
from model.join.live import ADDED, LEAVING, LEFT, OPEN
from model.join.scopes import Scope, State
from model.join.state import Acknowledgement, Block, ChainState, Pair, Ranks, Worker, is_quiet
from model.vocabulary.join import R, S

GONE = -1
TWICE = "no pair twice"
LOST = "no pair lost"
STUCK = "no deadlock"
COMPLETE = "complete in the end"
ONE_PLACE = "I1: every tuple in one place"
COPIES = "I2: copies are the blocks on their way"
CROSSED = "I3: emitted exactly if crossed"

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


# ------------------------------------------------------------------------------------- invariants


def _one_place(scope: Scope) -> Callable[[State], bool]:
    may_go = scope.lateness_us is not None or scope.ends

    def holds(state: State) -> bool:
        chain = state.chain
        for stream, admitted in ((R, chain.admitted_r), (S, chain.admitted_s)):
            found = sorted(chained(*[ranks for _, ranks in _places(scope, chain, stream)]))
            if len(set(found)) < len(found) or (not may_go and len(found) != admitted):
                return False
        return True

    return holds


def _copies(scope: Scope) -> Callable[[State], bool]:
    in_order = scope.network.order == "fifo" and not scope.network.cuts

    def holds(state: State) -> bool:
        chain = state.chain
        for at in range(len(chain.right)):
            kept_r, kept_s = chain.workers[at].r.copies, chain.workers[at + 1].s.copies
            for copies, there, back in (
                ([copy.block for copy in kept_r], chain.right[at], chain.left[at]),
                ([copy.block for copy in kept_s], chain.left[at], chain.right[at]),
            ):
                stream = R if there is chain.right[at] else S
                blocks = [m for m in there if isinstance(m, Block) and m.stream == stream]
                answers = [
                    m.number for m in back if isinstance(m, Acknowledgement) and m.stream == stream
                ]
                if in_order:
                    rest = copies[len(answers) :]
                    numbers = [block.number for block in copies[: len(answers)]]
                    if rest != blocks or numbers != answers:
                        return False
                else:
                    received = _received(chain, at, stream)
                    if any(b not in copies for b in blocks if b.number > received):
                        return False
        return True

    return holds


def _received(chain: ChainState, at: int, stream: str) -> int:
    worker = chain.workers[at + (stream == R)]
    return worker.r.received if stream == R else worker.s.received


def _has_crossed(scope: Scope, chain: ChainState, pair: Pair, r_at: int, s_at: int) -> bool:
    """Return whether the places of two tuples show that they must have met.

    A tuple that was dropped has met everything, except that a copy of it may still wait.
    """
    if r_at == GONE:
        return True
    if r_at % 2 == 0 or s_at >= r_at:
        return s_at < r_at or (s_at == r_at and s_at % 2 == 0)
    return pair[1] not in _waiting(scope, chain, pair[0], r_at // 2)


def _waiting(scope: Scope, chain: ChainState, r: int, at: int) -> Ranks:
    """Return the tuples of S in copies that the block with r will find when it arrives."""
    copies = chain.workers[at + 1].s.copies
    if scope.rules.numbered:
        block = next(b for b in _under_way(scope, chain, at, R) if r in b.tuples)
        copies = scope.rules.visible(chain.workers[at + 1], block)
    else:
        before = 0
        for message in chain.right[at]:
            if isinstance(message, Block) and r in message.tuples:
                break
            before += isinstance(message, Acknowledgement)
        copies = copies[before:]
    return tuple(rank for copy in copies for rank in copy.block.tuples)


def _crossed(scope: Scope) -> Callable[[State], bool]:
    return lambda state: next(_against_crossing(scope, state), None) is None


def _against_crossing(scope: Scope, state: State) -> Iterator[tuple[Pair, bool]]:
    """Yield the pairs that were emitted without having crossed, or the other way round."""
    chain = state.chain
    r_at, s_at = _positions(scope, chain, R), _positions(scope, chain, S)
    for bit, pair in enumerate(scope.pairs):
        r, s = pair
        if r >= chain.admitted_r or s >= chain.admitted_s or not scope.is_result(pair):
            continue
        emitted = bool(state.once >> bit & 1)
        crossed = _has_crossed(scope, chain, pair, r_at.get(r, GONE), s_at.get(s, GONE))
        if crossed != emitted:
            yield pair, emitted


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


def _copy_waits(scope: Scope) -> Callable[[State], bool]:
    def waits(state: State) -> bool:
        chain = state.chain
        return any(
            isinstance(message, Block) and scope.rules.visible(chain.workers[at + 1], message)
            for at, channel in enumerate(chain.right)
            for message in channel
        )

    return waits


def _guards(scope: Scope) -> list[StateClaim[State]]:
    guards = [
        sometimes("blocks pass each other", _blocks_pass),
        sometimes("a copy waits for a block", _copy_waits(scope)),
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
    held = _held(chain.workers) + len(chain.queue) + len(chain.new_queue)
    return not chain.ended and is_quiet(chain) and held < chain.admitted_r + chain.admitted_s


def _held(workers: tuple[Worker, ...]) -> int:
    return sum(len(worker.r.store) + len(worker.s.store) for worker in workers)


# ----------------------------------------------------------------------------------------- claims


def _named(pair: Pair) -> str:
    return f"(r{pair[0]}, s{pair[1]})"


def _pairs(scope: Scope, mask: int) -> str:
    return " and ".join(_named(p) for bit, p in enumerate(scope.pairs) if mask >> bit & 1)


def _outcomes(scope: Scope, names: tuple[str, ...]) -> list[StateClaim[State]]:
    """Return the claims whose violation a user would notice."""
    wanted = results_mask(scope)
    return [
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


def claims_of(scope: Scope) -> list[StateClaim[State]]:
    """Return all claims of docs/join.md about a state."""
    guards = _guards(scope)
    names = tuple(guard.name for guard in guards)
    return [
        *guards,
        *_outcomes(scope, names),
        always(ONE_PLACE, _one_place(scope), guards=names),
        always(COPIES, _copies(scope), guards=names),
        always(
            CROSSED,
            _crossed(scope),
            guards=names,
            explain=lambda state: "; ".join(
                f"{_named(pair)} was {'emitted' * was or 'not emitted'}"
                for pair, was in _against_crossing(scope, state)
            ),
        ),
    ]
