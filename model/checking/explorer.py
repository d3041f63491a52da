"""Exhaustive breadth-first search over a transition system.

Source: explicit-state model checking as in Yu, Manolios and Lamport, "Model Checking TLA+
Specifications" (the checker TLC), with the claims of Stateright (always, sometimes).

Rules of this file:

1. A machine is data and pure functions; the same state always has the same actions in the same
   order. Paths rely on it: the search remembers one parent of a state and asks for actions again.
2. Counts, verdicts and paths are a function of the machine and the claims alone. No set is iterated
   over; a dict remembers the order in which states were found.
3. A claim that says "always" holds only if nothing was left unseen *and* its guards occurred.

Theory of operation: the search proceeds by levels; a level is the states at one distance from the
start. The inner loop only finds new states. Claims then look at the whole level at once, which is
faster and still finds a state of least distance. Limit: all states are in memory.
"""

import enum
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import filterfalse
from typing import Generic, TypeVar

from model.checking.claims import Outcome, Verdict

S = TypeVar("S", bound=Hashable)
A = TypeVar("A")
Seen = TypeVar("Seen", bound=Hashable, covariant=True)
Taken = TypeVar("Taken", covariant=True)

# ------------------------------------------------------------------------------------- machines


@dataclass(frozen=True, slots=True)
class Machine(Generic[S, A]):
    """A transition system.

    ``initial`` is a sequence, because the order in which states are found starts with it.
    ``actions`` returns, for a state, every possible action with the state that follows. The two
    ``describe`` functions return phrases without a full stop, from which paths are rendered.
    """

    initial: Sequence[S]
    actions: Callable[[S], Iterable[tuple[A, S]]]
    describe_action: Callable[[A], str] = str
    describe_state: Callable[[S], str] = str


@dataclass(frozen=True, slots=True)
class Path(Generic[Seen, Taken]):
    """A behaviour: an initial state, then actions, each with the state it leads to."""

    initial: Seen
    steps: tuple[tuple[Taken, Seen], ...] = ()

    @property
    def last(self) -> Seen:
        """The state in which the path ends."""
        return self.steps[-1][1] if self.steps else self.initial


def render(path: Path[S, A], machine: Machine[S, A]) -> tuple[str, ...]:
    """Write a path as numbered sentences; number 0 is the initial state."""
    start = f"0. Initially {machine.describe_state(path.initial)}."
    steps = (
        f"{number}. {machine.describe_action(action)}: {machine.describe_state(state)}."
        for number, (action, state) in enumerate(path.steps, start=1)
    )
    return (start, *steps)


# --------------------------------------------------------------------------------------- claims


class Kind(enum.Enum):
    """The kinds of claims about the reachable states."""

    ALWAYS = "always"
    SOMETIMES = "sometimes"
    NO_DEADLOCK = "no deadlock"


@dataclass(frozen=True, slots=True)
class StateClaim(Generic[S]):
    """A claim about the states of a machine, made by one of the three functions below."""

    kind: Kind
    name: str
    predicate: Callable[[S], bool]
    guards: tuple[str, ...] = ()
    explain: Callable[[S], str] | None = None

    @property
    def is_safety(self) -> bool:
        """Return whether one state can break the claim (and no state alone can establish it)."""
        return self.kind in (Kind.ALWAYS, Kind.NO_DEADLOCK)


def always(
    name: str,
    predicate: Callable[[S], bool],
    *,
    guards: tuple[str, ...],
    explain: Callable[[S], str] | None = None,
) -> StateClaim[S]:
    """Claim that the predicate is true in every state (safety).

    ``guards`` names the ``sometimes`` claims without which the claim would be
    empty; until all of them have occurred it is undetermined. ``explain`` says what is wrong with
    a state that breaks the claim, without a full stop. Raises ValueError if no guard is named.
    """
    if not guards:
        raise ValueError(f"the claim {name!r} names no guard, so it could hold without a test")
    return StateClaim(Kind.ALWAYS, name, predicate, guards, explain)


def sometimes(name: str, predicate: Callable[[S], bool]) -> StateClaim[S]:
    """Guard against an empty test: the predicate is true in at least one state."""
    return StateClaim(Kind.SOMETIMES, name, predicate)


def no_deadlock(
    name: str, is_final: Callable[[S], bool], *, guards: tuple[str, ...] = ()
) -> StateClaim[S]:
    """Claim that every state without any action is a final one.

    A state whose only actions lead back to itself is not a deadlock, as in TLC.
    """
    return StateClaim(Kind.NO_DEADLOCK, name, is_final, guards)


# -------------------------------------------------------------------------------------- results


@dataclass(frozen=True, slots=True)
class Exploration(Generic[Seen, Taken]):
    """The result of a search.

    ``unique_states`` counts states, ``transitions`` counts the successors generated on the way
    (initial states are not among them), ``depth`` is the distance of the farthest state found, in
    actions. ``cut`` names what ended the search, or is None if nothing was left unseen. ``paths``
    has a shortest path for each claim that was broken or whose state was reached, by the name of
    the claim.
    """

    unique_states: int
    transitions: int
    depth: int
    cut: str | None
    verdicts: tuple[Verdict, ...]
    paths: Mapping[str, Path[Seen, Taken]]


# --------------------------------------------------------------------------------------- search


@dataclass(slots=True)
class _Search(Generic[S, A]):
    """A search in progress. An initial state is its own parent."""

    machine: Machine[S, A]
    claims: Sequence[StateClaim[S]]
    parents: dict[S, S] = field(default_factory=dict)
    transitions: int = 0
    depth: int = 0
    cut: str | None = None
    sightings: dict[str, S] = field(default_factory=dict)
    """The first state that decides a claim: it breaks an always, or it satisfies a sometimes."""

    def start(self) -> list[S]:
        """Return the initial states, each once."""
        level = list(dict.fromkeys(self.machine.initial))
        self.parents = dict(zip(level, level, strict=True))
        self.observe(level, [])
        return level

    def expand(self, level: list[S]) -> list[S]:
        """Return the new states that are one action away from a level."""
        # Nearly all the time of a search is spent here, hence the local names.
        actions, parents = self.machine.actions, self.parents
        transitions = self.transitions
        found: list[S] = []
        stuck: list[S] = []
        for state in level:
            before = transitions
            for _, successor in actions(state):
                transitions += 1
                if successor not in parents:
                    parents[successor] = state
                    found.append(successor)
            if transitions == before:
                stuck.append(state)
        self.transitions = transitions
        self.depth += bool(found)
        self.observe(found, stuck)
        return found

    def observe(self, found: list[S], stuck: list[S]) -> None:
        """Let every claim not yet decided look at new states, and at states with no action."""
        for claim in self.claims:
            if claim.name in self.sightings:
                continue
            telling: Iterator[S]
            if claim.kind is Kind.ALWAYS:
                telling = filterfalse(claim.predicate, found)
            elif claim.kind is Kind.NO_DEADLOCK:
                telling = filterfalse(claim.predicate, stuck)
            else:
                telling = filter(claim.predicate, found)
            for state in telling:
                self.sightings[claim.name] = state
                break

    def path_to(self, state: S) -> Path[S, A]:
        """Walk back to an initial state, asking each parent which action led on."""
        steps: list[tuple[A, S]] = []
        while (parent := self.parents[state]) != state:
            for action, successor in self.machine.actions(parent):
                if successor == state:
                    steps.append((action, state))
                    break
            else:
                raise ValueError(f"actions({parent!r}) once led to {state!r} and now does not")
            state = parent
        return Path(state, tuple(reversed(steps)))


def explore(
    machine: Machine[S, A],
    claims: Sequence[StateClaim[S]] = (),
    *,
    promise: str | None = None,
) -> Exploration[S, A]:
    """Search all states of a machine, breadth first, and judge the claims.

    The search goes on after all claims are decided, so that the counts are always those of the
    whole machine. With ``promise``, the name of an ``always`` or ``no_deadlock`` claim, only this
    claim and the guards are judged, and the search ends with the level in which the claim breaks:
    that is how a planted bug is searched for.

    Raises ValueError for two claims of one name, for a guard that is no ``sometimes`` claim of this
    search, and for a machine whose actions change.
    """
    if promise is not None:
        claims = [claim for claim in claims if not claim.is_safety or claim.name == promise]
    _check(claims)
    search = _Search(machine, claims)
    level = search.start()
    while level and not search.cut:
        if promise in search.sightings:
            search.cut = "the first broken claim"
        else:
            level = search.expand(level)
    paths = {name: search.path_to(state) for name, state in search.sightings.items()}
    return Exploration(
        unique_states=len(search.parents),
        transitions=search.transitions,
        depth=search.depth,
        cut=search.cut,
        verdicts=tuple(_judge(claim, search, paths.get(claim.name)) for claim in claims),
        paths=paths,
    )


def _check(claims: Sequence[StateClaim[S]]) -> None:
    names = [claim.name for claim in claims]
    sightable = {claim.name for claim in claims if not claim.is_safety}
    for claim in claims:
        if names.count(claim.name) > 1:
            raise ValueError(f"two claims have the name {claim.name!r}")
        for guard in claim.guards:
            if guard not in sightable:
                raise ValueError(
                    f"the guard {guard!r} of {claim.name!r} is no sometimes claim here"
                )


# ------------------------------------------------------------------------------------- verdicts


def _judge(claim: StateClaim[S], search: _Search[S, A], path: Path[S, A] | None) -> Verdict:
    if claim.is_safety:
        return _judge_safety(claim, search, path)
    if path is not None:
        sentence = f"Seen after {_count(len(path.steps), 'action')}."
        return Verdict(claim.name, Outcome.HOLDS, sentence)
    states = _count(len(search.parents), "state")
    if search.cut:
        sentence = f"Not seen in {states}, but {search.cut} ended the search."
        return Verdict(claim.name, Outcome.UNDETERMINED, sentence)
    sentence = f"Not seen, and {states} are all there are."
    return Verdict(claim.name, Outcome.UNDETERMINED, sentence)


def _judge_safety(claim: StateClaim[S], search: _Search[S, A], path: Path[S, A] | None) -> Verdict:
    if path is not None:
        sentence = f"Broken after {_count(len(path.steps), 'action')}."
        witness = render(path, search.machine) + _explanation(claim, path.last)
        return Verdict(claim.name, Outcome.BROKEN, sentence, witness)
    states = _count(len(search.parents), "state")
    if not search.parents:
        return Verdict(claim.name, Outcome.UNDETERMINED, "The machine has no state at all.")
    missing = tuple(guard for guard in claim.guards if guard not in search.sightings)
    if missing:
        sentence = f"Not broken in {states}, but its guards did not all occur."
        witness = tuple(f"Never seen: {guard}." for guard in missing)
        return Verdict(claim.name, Outcome.UNDETERMINED, sentence, witness)
    return Verdict(claim.name, Outcome.HOLDS, f"True of all {states}.")


def _explanation(claim: StateClaim[S], state: S) -> tuple[str, ...]:
    if claim.kind is Kind.NO_DEADLOCK:
        return ("No action is possible in this state, and it is not a final one.",)
    return (f"{claim.explain(state)}.",) if claim.explain else ()


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
