"""Room ``join`` by hand: what no drawn case shows."""

import pytest

from model.join.control import decision_at
from model.join.oracle import admission
from model.join.state import Block, Copy, Lane, unacknowledged
from model.vocabulary import Event, JoinConfig, Workload
from model.vocabulary.join import And, Decision, R


def test_an_unknown_stream_is_refused() -> None:
    config = JoinConfig(2, (("all", And()),))
    with pytest.raises(ValueError, match="stream is 'T'"):
        admission(Workload("join", (Event(0, 0, "a", 0, 0.0, 0, "T"),), config.to_json()))


def test_a_block_counts_against_the_credit_until_its_acknowledgement() -> None:
    """An acknowledgement may say that nothing was sent before it."""
    copies = tuple(Copy(Block(R, n, 0, (n,), 0), sent) for n, sent in enumerate((-1, 0, 5, -1)))
    assert unacknowledged(Lane(copies=copies)) == 2


CONFIG = JoinConfig(
    5, (("all", And()),), 3, 7, decisions=(Decision(2, 4, 5, 0.5), Decision(3, 1, 9, 0.0))
)


def test_a_decision_holds_until_the_next_one() -> None:
    found = [decision_at(CONFIG, epoch)[1:] for epoch in range(5)]
    assert found == [(3, 7, 0.0), (3, 7, 0.0), (4, 5, 0.5), (1, 9, 0.0), (1, 9, 0.0)]
