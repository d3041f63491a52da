"""Requests of several processes to one chain: each is named its epoch, and holds from it on.

Processes come in between each other's reading and writing, and the process of the chain dies and
comes back. What is expected follows from the order of the requests alone.
"""

import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple
from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.vocabulary import JoinConfig
from model.vocabulary.join import END_US, And
from model.vocabulary.join_conditions import parse_condition
from model.vocabulary.join_predicates import NUMBER
from properties.promised import Reached, promised
from spark_impl.join import register
from spark_impl.join.agent import status_of
from spark_impl.join.control import Clocks
from spark_impl.join.matching import Counts
from spark_impl.join.register import Register
from spark_impl.join.store import ChainStore, Commit
from spark_impl.runtime.storage import InputProblem, Location, locate

GIVEN = JoinConfig(10, (("own", And()),))
CHANGED, ENDED, UNKNOWN = "has changed", "ended with", "there is no query"
LAST = "has not begun, and a chain needs a query"


class Step(NamedTuple):
    """Action of a process: submit, withdraw, begin, commit, fail or reopen."""

    what: str
    name: str = ""
    text: str = ""


class Expected(NamedTuple):
    """The queries, from the order of steps."""

    next: int = 0
    """The first epoch that has not begun."""
    committed: int = 0
    """The first epoch that is not committed."""
    spans: tuple[tuple[str, str, int, int | None], ...] = (("own", "any", 0, None),)
    """Names, conditions, first and last epochs."""

    def after(self, step: Step) -> "tuple[Expected, int | str]":
        """Return what is expected after a step, and the epoch that it names, or its refusal."""
        match step.what:
            case "submit":
                return self._submitted(step.name, step.text)
            case "withdraw":
                return self._withdrawn(step.name)
            case "begin":
                return self._replace(next=self.committed + 1), ""
            case "commit":
                return self._replace(committed=self.committed + 1), ""
        return self._replace(next=self.committed), ""

    def _submitted(self, name: str, text: str) -> "tuple[Expected, int | str]":
        for other, known, first, last in self.spans:
            if other == name:
                over = last is not None and last < self.next
                return self, CHANGED if known != text else ENDED if over else first
        return self._replace(spans=(*self.spans, (name, text, self.next, None))), self.next

    def _withdrawn(self, name: str) -> "tuple[Expected, int | str]":
        others = tuple(each for each in self.spans if each[0] != name)
        for known, text, first, last in self.spans:
            if known != name:
                continue
            if last is not None and last < self.next:
                return self, last + 1
            if first >= self.next:
                return (self._replace(spans=others), self.next) if others else (self, LAST)
            ended = (name, text, first, self.next - 1)
            return self._replace(spans=(*others, ended)), self.next
        return self, UNKNOWN


class Processes:
    """A chain, and who asks."""

    def __init__(self, folder: str) -> None:
        self.store, self.expected = ChainStore(locate(Path(folder))), Expected()
        self.done: Commit | None = None
        self.begun: Register
        self.do(Step("reopen"))

    def do(self, step: Step, *between: Step) -> str:
        """Do a step, with others between its reading and its writing; return what came out."""
        if step.what == "commit":
            self._commit()
            return "commit"
        left = list(between) if self.expected.after(step)[0] != self.expected else []

        def interrupted(known: Register | None) -> Register:
            after = self._changed(step, known)
            while left:
                self.do(left.pop(0))
            return after

        refusal = ""
        try:
            found = register.change(self.store, self.done, interrupted)
        except InputProblem as problem:
            refusal = str(problem)
        self.expected, wanted = self.expected.after(step)
        if isinstance(wanted, str) and wanted:
            assert wanted in refusal, step
            return wanted
        assert not refusal, step
        match step.what:
            case "submit":
                assert found.config.span(step.name)[0] == wanted
            case "withdraw":
                assert register.end_of(found, step.name) == wanted
            case "begin":
                self.begun = found
        return step.what

    def _changed(self, step: Step, known: Register | None) -> Register:
        epoch = 0 if self.done is None else self.done.epoch + 1
        if step.what == "reopen":
            return register.opened(known, self.done, Register(GIVEN, epoch))
        assert known is not None
        match step.what:
            case "submit":
                return register.submitted(known, step.name, parse_condition(step.text))
            case "withdraw":
                return register.withdrawn(known, step.name)
            case "begin":
                return register.begun(known, epoch, flush=False)
        return register.taken_back(known, epoch)

    def _commit(self) -> None:
        self.done = commit_of(self.begun)
        self.expected = self.expected.after(Step("commit"))[0]
        register.tidy(self.store)

    def check(self) -> None:
        """Compare the register with what is expected."""
        known = register.read(self.store, self.done)
        assert known is not None
        queries = dict(known.config.queries)
        found = {name: (queries[name], *known.config.span(name)) for name in queries}
        wanted = {name: (parse_condition(text), *span) for name, text, *span in self.expected.spans}
        assert (known.next, found) == (self.expected.next, wanted)


def commit_of(begun: Register) -> Commit:
    return Commit(
        epoch=begun.next - 1,
        flush=begun.flush,
        config=begun.config,
        history=False,
        committed_us=0,
        matches={},
        reasons={},
        admitted=Counts(0, 0),
        held=Counts(0, 0),
        complete_us=0,
        clocks=Clocks(),
        changed=begun.changed,
    )


SUBMIT = st.builds(
    Step, st.just("submit"), st.sampled_from(["a", "b"]), st.sampled_from(["any", "key"])
)
WITHDRAW = st.builds(Step, st.just("withdraw"), st.sampled_from(["own", "a", "b"]))
REQUEST = st.one_of(SUBMIT, SUBMIT, WITHDRAW)


@promised("submit", "withdraw", "commit", "reopen", "fail", CHANGED, ENDED, UNKNOWN, examples=200)
@given(data=st.data())
def test_a_request_holds_from_the_epoch_that_it_was_named(
    reached: Reached, data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        processes, has_begun = Processes(folder), False
        for _ in range(data.draw(st.integers(1, 12))):
            ends = ["commit", "commit", "fail"] if has_begun else ["begin", "begin"]
            what = data.draw(st.sampled_from(["request", "request", "request", "reopen", *ends]))
            step = data.draw(REQUEST) if what == "request" else Step(what)
            between = data.draw(st.lists(REQUEST, max_size=2))
            reached.add({processes.do(step, *between): 1})
            has_begun = what == "begin" or (has_begun and what == "request")
            processes.check()


def test_who_was_asleep_while_old_files_went_asks_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number that was next is free again, but what is written there does not count."""
    monkeypatch.setattr(register, "_KEPT", 1)
    processes = Processes(str(tmp_path))
    epochs = [Step(what) for _ in range(3) for what in ("begin", "commit")]
    assert processes.do(Step("submit", "a", "key"), *epochs) == "submit"
    processes.check()
    assert ("a", "key", 3, None) in processes.expected.spans
    # It has not begun, and is gone at once.
    assert processes.do(Step("withdraw", "a")) == "withdraw"


WITH_COLUMN = JoinConfig(
    10,
    (("own", And()), ("a", parse_condition("r.n < s.value", {"n": NUMBER})), ("f", And())),
    epochs=(("own", 0, 1),),
    r_columns=(("n", NUMBER), ("m", NUMBER)),
)
"""A chain with a function, a query of two epochs, one on a column, and another column."""


def with_column() -> tuple[Register, Commit]:
    """Return a chain that has run an epoch, and its commit."""
    first = register.opened(None, None, Register(WITH_COLUMN, 0, functions=("f",)))
    begun = register.begun(first, 0, flush=False)
    return begun, commit_of(begun)._replace(functions=("f",))


def test_what_a_committed_epoch_has_done_stays_whatever_another_process_noted(
    tmp_path: Path,
) -> None:
    """The other one took the epoch back, and withdrew its queries, before it was committed."""
    known, _ = with_column()
    begun = register.begun(register.submitted(known, "b", And(), ("r.key",)), 1, flush=False)
    done = commit_of(begun)._replace(functions=("f",), selects=begun.selects)
    noted = register.taken_back(begun, 1)
    for name in ("own", "a", "b"):
        noted = register.withdrawn(noted, name)
    bare = replace(noted.config, queries=noted.config.queries[:1], epochs=(("own", 0, 0),))
    bare = replace(bare, r_columns=())
    store = ChainStore(locate(tmp_path))
    register.change(store, None, lambda _: noted._replace(config=bare, functions=()))
    found = register.read(store, done)
    assert found is not None
    spans = {name: found.config.span(name) for name in found.names}
    assert spans == {"own": (0, 1), "a": (0, 1), "f": (0, 1), "b": (1, 1)}
    assert (found.next, found.functions, found.selects) == (2, ("f",), {"b": ("r.key",)})
    assert found.config.r_columns == WITH_COLUMN.r_columns


def test_columns_last_as_soon_as_an_epoch_is_committed() -> None:
    known, done = with_column()
    assert register.opened(known, None, Register(GIVEN, 0)).config == GIVEN
    again = Register(WITH_COLUMN, 1, functions=("f",))
    assert register.opened(known, done, again) == known
    less = again._replace(config=replace(WITH_COLUMN, r_columns=WITH_COLUMN.r_columns[:1]))
    with pytest.raises(InputProblem, match=r"^R has the column 'm' .* but it is not given: "):
        register.opened(known, done, less)


def test_a_query_that_never_began_leaves_nothing() -> None:
    """One that has begun may still owe pairs."""
    known = Register(WITH_COLUMN, 0, functions=("a", "f"))
    known = register.submitted(known, "b", And(), ("r.key",))
    begun = register.begun(known, 0, flush=False)
    for each, names, selects in ((known, ("a",), {}), (begun, ("a", "f"), known.selects)):
        left = register.withdrawn(register.withdrawn(each, "f"), "b")
        assert (left.functions, left.selects) == (names, selects)
    assert register.opened(begun, None, Register(GIVEN, 0)).selects == {"b": ("r.key",)}


def test_a_request_that_cannot_be_written_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    processes = Processes(str(tmp_path))
    monkeypatch.setattr(Location, "write_bytes", Mock(side_effect=[InputProblem("no space left")]))
    asked = partial(processes._changed, Step("submit", "a", "key"))
    with pytest.raises(InputProblem, match="no space left"):
        register.change(processes.store, None, asked)


def test_a_file_that_goes_before_it_is_read_is_not_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    processes, read = Processes(str(tmp_path)), Location.read_bytes
    late = [FileNotFoundError]

    def read_bytes(file: Location) -> bytes:
        if late:
            raise late.pop()
        return read(file)

    monkeypatch.setattr(Location, "read_bytes", read_bytes)
    processes.check()
    assert not late


def test_an_opening_that_committed_nothing_ends_no_query() -> None:
    """Between two openings with a query, one without it runs no epoch."""
    two = JoinConfig(10, (("own", And()), ("a", And())))
    begun = register.begun(register.opened(None, None, Register(two, 0)), 0, flush=False)
    done = commit_of(begun)
    without = register.opened(begun, done, Register(GIVEN, 1))
    assert without.config.span("a") == (0, 0)
    assert register.opened(without, done, Register(two, 1)).config.span("a") == (0, None)


@pytest.mark.parametrize("committed", range(3))
@pytest.mark.parametrize("end", [None, 5])
def test_a_query_that_the_chain_was_given_lasts_if_somebody_submits_it(
    committed: int, end: int | None
) -> None:
    """The next opening does not give it: without the request it has ended."""
    given = JoinConfig(10, (("own", And()), ("a", And())), epochs=(("a", 0, end),))
    known = register.opened(None, None, Register(given, 0))
    done: Commit | None = None
    for epoch in range(committed):
        known = register.begun(known, epoch, flush=False)
        done = commit_of(known)
    asked = register.submitted(known, "a", And())
    assert register.submitted(asked, "a", And()) == asked
    spans = {
        after.config.span("a") if "a" in after.names else None
        for after in (
            register.opened(each, done, Register(GIVEN, committed)) for each in (known, asked)
        )
    }
    assert spans == {(0, end), (0, committed - 1) if committed else None}


def test_a_chain_whose_query_was_withdrawn_before_it_began_is_opened_without_it() -> None:
    limited = JoinConfig(10, (("own", And()), ("a", And())), epochs=(("a", 0, 5),))
    known = register.withdrawn(register.opened(None, None, Register(limited, 0)), "a")
    assert register.opened(known, None, Register(limited, 0)).names == ["own"]


def test_a_name_that_no_file_can_hold_is_refused() -> None:
    known = register.opened(None, None, Register(GIVEN, 0))
    with pytest.raises(InputProblem, match="it must be a text that is not empty"):
        register.submitted(known, "\udcff", And())


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    processes = Processes(str(tmp_path))
    (tmp_path / "_control" / "00000001.json").mkdir()
    with pytest.raises(InputProblem, match=r"00000001\.json cannot be read: "):
        register.read(processes.store, None)


@pytest.mark.parametrize("r_held", [(), (0,), (3, 5), (8, 9, 10)])
@pytest.mark.parametrize("s_held", [(), (1,), (3, 4, 9), (9,)])
@pytest.mark.parametrize("last", [None, 0, 1, 2])
@pytest.mark.parametrize("withdrawn", [True, False])
def test_a_tuple_is_pending_as_long_as_a_partner_is_or_may_come(
    r_held: tuple[int, ...], s_held: tuple[int, ...], last: int | None, withdrawn: bool
) -> None:
    """Each of two epochs has admitted five tuples of each stream."""
    config = JoinConfig(10, (("a", And()),), epochs=(("a", 0, last),))
    known = Register(config, 0, changed=("a",) if withdrawn else ())
    begun = [register.begun(known, epoch, flush=False) for epoch in range(2)]
    commits = [
        commit_of(each)._replace(admitted=Counts(5 * each.next, 5 * each.next)) for each in begun
    ]
    place: Any = SimpleNamespace(admitted_before=lambda epoch: Counts(5 * epoch, 5 * epoch))
    held = np.array(r_held, np.int64), np.array(s_held, np.int64)
    found = status_of(place, begun[-1], commits, held, "a", And())
    r, s = ([rank for rank in each if rank < (5 if last == 0 else 10)] for each in (r_held, s_held))
    is_final = last == 0 or (last == 1 and withdrawn)
    may_meet = (r and s) or not is_final
    assert found.pending == (len(r) + len(s) if may_meet else 0)
    assert found.complete_us == (0 if may_meet else END_US)
