"""Golden state counts, which notice every change of what can happen."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from model.checking.claims import Outcome, combine
from model.checking.explorer import render
from model.join.scopes import (
    EVERYDAY,
    SCOPES,
    Protocol,
    State,
    chart,
    describe_action,
    machine_of,
)
from model.join.state import IN_ORDER, UNORDERED, Acknowledgement, Block
from model.join.variants import explore, scope_of
from tests.model.join import golden
from tests.model.join.golden import GOLDEN


def reachable(protocol: Protocol) -> Iterator[State]:
    """Yield every reachable state."""
    found = [protocol.initial()]
    seen = set(found)
    for state in found:
        yield state
        new = dict.fromkeys(then for _, then in protocol.actions(state) if then not in seen)
        seen.update(new)
        found += new


@pytest.mark.parametrize("name", ["adding-large", "removing"])
def test_workers_come_and_go_while_blocks_are_on_their_way(name: str) -> None:
    changing = [each.chain for each in reachable(Protocol(SCOPES[name])) if each.chain.phase]
    messages = [
        message
        for chain in changing
        for channel in (*chain.right, *chain.left)
        for message in channel
    ]
    assert any(isinstance(message, Block) and message.tuples for message in messages)
    assert any(isinstance(message, Acknowledgement) for message in messages)
    assert any(worker.s.copies for chain in changing for worker in chain.workers)


def test_a_split_says_what_goes_right() -> None:
    protocol = Protocol(SCOPES["elastic"])
    said = set()
    for state in reachable(protocol):
        for action, then in protocol.actions(state):
            if action.what == "split":
                r, s = then.chain.workers[action.worker + 1]
                goes = len(r.store), len(s.store)
                text = describe_action(state, then, action)
                r_goes, s_goes = f"{goes[0]} of R go right", f"R and {goes[1]} of S go right"
                assert text == f"is split: {s_goes if goes[1] else r_goes}"
                said.add(bool(goes[1]))
    assert said == {True, False}


@pytest.mark.parametrize(("block_size", "next_waits"), [(1, True), (2, False)])
def test_a_pair_is_out_when_both_streams_have_moved_past_it(
    block_size: int, next_waits: bool
) -> None:
    """The next pair may wait if there is no flush; nothing waits longer than that."""
    past = replace(SCOPES["balanced"], ends=False, block_size=block_size)
    protocol = Protocol(past)
    resting = [state for state in reachable(protocol) if not list(protocol.actions(state))]
    bit = {pair: 1 << number for number, pair in enumerate(past.pairs)}
    assert resting
    assert all(state.once & bit[0, 0] for state in resting)
    assert any(not state.once & bit[1, 1] for state in resting) is next_waits


def test_scopes_of_every_day_are_scopes() -> None:
    assert set(golden.EVERYDAY) == set(EVERYDAY) <= set(SCOPES)


@pytest.mark.parametrize("order", [IN_ORDER.order, UNORDERED.order])
def test_watermarks_and_a_flush_are_explored_over_either_kind_of_channel(order: str) -> None:
    scopes = [SCOPES[name] for name in EVERYDAY if SCOPES[name].network.order == order]
    assert [scope for scope in scopes if scope.lateness_us is not None]
    assert [scope for scope in scopes if scope.ends]


def test_every_scope_of_every_day_is_in_the_table_with_its_states() -> None:
    page = (Path(__file__).parents[3] / "docs" / "join.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([\w-]+)` \| .* \| ([\d,]+) \|$", page, flags=re.M)
    assert dict(rows) == {name: f"{states:,}" for name, (states, _) in golden.EVERYDAY.items()}
    night = [states for name, (states, _) in GOLDEN.items() if name not in golden.EVERYDAY]
    assert f"| {min(night):,} to {max(night):,} |" in page


def test_a_large_scope_can_be_cut_short() -> None:
    found = explore("four", max_states=1_000)
    assert found.cut
    assert combine(found.verdicts) is Outcome.UNDETERMINED


def test_a_path_is_sentences() -> None:
    path = explore("fifo").paths["a copy waits for a block"]
    assert render(path, machine_of(SCOPES["fifo"])) == (
        "0. Initially no pair came out.",
        "1. admit R at worker 0: worker 0 has r0, no pair came out.",
        "2. admit S at worker 1: worker 0 has r0, worker 1 has s0, no pair came out.",
        "3. forward R of 1 at worker 0: worker 1 has s0, no pair came out.",
        "4. forward S of 1 at worker 1: no pair came out.",
    )


def test_a_counterexample_is_a_chart() -> None:
    path = explore("fifo", "no_numbers").paths["no pair twice"]
    assert chart(scope_of("fifo", "no_numbers"), path) == (
        "     worker 0                          worker 1",
        "  1. r0 enters                         |",
        "  2. |                                 s0 enters",
        "  3. |                                 <-- [s0]",
        "  4. <-- [s0] => (r0 s0)               |",
        "  5. [r0] -->                          |",
        "  6. |                                 --> [r0] => (r0 s0) AGAIN",
    )


def test_a_name_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(KeyError):
        explore("huge")
