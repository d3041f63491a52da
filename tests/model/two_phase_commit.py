"""Two-phase commit, the model that calibrates the explorer.

Source: Jim Gray and Leslie Lamport, "Consensus on Transaction Commit", its specification of
two-phase commit. The model checker Stateright carries the same example and finds 288 states for 3
resource managers and 8,832 for 5.

Rules of this file:

1. A message once sent is never lost and never taken away: a receiver may read it again.
2. Everything that may happen is an action, and the managers speak to nobody but through messages.
3. Sets are bit masks and the managers' states are one letter each, for the explorer's speed is
   measured on this model.
"""

from collections.abc import Iterator
from typing import NamedTuple

from model.checking.explorer import Machine, StateClaim, always, sometimes

# ---------------------------------------------------------------------------------------- state

WORKING, PREPARED, COMMITTED, ABORTED = "w", "p", "c", "a"
UNDECIDED = "u"

# The set of messages as a mask: two decisions, then one "prepared" message a manager.
COMMIT, ABORT, FIRST_PREPARED = 1, 2, 4


class State(NamedTuple):
    """The whole system at one moment."""

    managers: str
    """One letter a resource manager: working, prepared, committed or aborted."""
    coordinator: str
    """The transaction manager: undecided, committed or aborted."""
    heard: int
    """Mask of the managers whose "prepared" message the coordinator has received."""
    messages: int
    """Mask of all messages sent so far."""


# ------------------------------------------------------------------------------------- actions

# What happens, and to which manager.
Action = tuple[str, int]
Step = tuple[Action, State]

NOBODY = -1


def coordinator_actions(state: State, votes_needed: int) -> Iterator[Step]:
    """Yield the actions of an undecided coordinator."""
    managers, _, heard, messages = state
    if heard.bit_count() >= votes_needed:
        done = State(managers, COMMITTED, heard, messages | COMMIT)
        yield ("the coordinator commits", NOBODY), done
    yield ("the coordinator aborts", NOBODY), State(managers, ABORTED, heard, messages | ABORT)
    for i in range(len(managers)):
        if messages & FIRST_PREPARED << i:
            done = State(managers, UNDECIDED, heard | 1 << i, messages)
            yield ("the coordinator hears of a vote", i), done


def manager_actions(state: State) -> Iterator[Step]:
    """Yield the actions of the resource managers."""
    managers, coordinator, heard, messages = state
    for i, manager in enumerate(managers):
        before, after = managers[:i], managers[i + 1 :]
        if manager == WORKING:
            sent = messages | FIRST_PREPARED << i
            done = State(before + PREPARED + after, coordinator, heard, sent)
            yield ("a manager prepares", i), done
            done = State(before + ABORTED + after, coordinator, heard, messages)
            yield ("a manager aborts on its own", i), done
        if messages & COMMIT:
            done = State(before + COMMITTED + after, coordinator, heard, messages)
            yield ("a manager receives the commit", i), done
        if messages & ABORT:
            done = State(before + ABORTED + after, coordinator, heard, messages)
            yield ("a manager receives the abort", i), done


# --------------------------------------------------------------------------------------- model


def two_phase_commit(managers: int, votes_needed: int | None = None) -> Machine[State, Action]:
    """Build the protocol for a number of resource managers.

    ``votes_needed`` plants a bug: the coordinator may commit as soon as that many managers are
    known to be prepared, where the protocol waits for all of them.
    """
    quorum = managers if votes_needed is None else votes_needed

    def actions(state: State) -> Iterator[Step]:
        if state.coordinator == UNDECIDED:
            yield from coordinator_actions(state, quorum)
        yield from manager_actions(state)

    start = State(WORKING * managers, UNDECIDED, heard=0, messages=0)
    return Machine([start], actions)


# --------------------------------------------------------------------------------------- claims


def is_consistent(state: State) -> bool:
    """Return whether no manager has aborted while another one has committed."""
    return ABORTED not in state.managers or COMMITTED not in state.managers


def all_committed(state: State) -> bool:
    """Return whether every manager has committed."""
    return not state.managers.strip(COMMITTED)


def all_aborted(state: State) -> bool:
    """Return whether every manager has aborted."""
    return not state.managers.strip(ABORTED)


CLAIMS: tuple[StateClaim[State], ...] = (
    sometimes("some transaction commits", all_committed),
    sometimes("some transaction aborts", all_aborted),
    always(
        "managers agree",
        is_consistent,
        guards=("some transaction commits", "some transaction aborts"),
    ),
)
