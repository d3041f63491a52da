"""A whole chain without Spark: stores, connections, crashes and merges lose and double no pair.

The tasks of ``test_spark.py`` are threads here, and two epochs are merged already.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path

import pyarrow.compute as pc
import pytest

from model.checking.claims import Outcome
from model.join.replay import validate_recording
from model.vocabulary import Fault, JoinConfig, Trace, Workload
from model.vocabulary.join import Admit, Match, Quiet, Rejected
from properties.chain_workloads import long_case
from properties.oracles.join import Recomputation
from properties.stream_packs import collect
from spark_impl.join import snapshots
from spark_impl.join.store import load_store
from spark_impl.join.system import run_workloads
from spark_impl.runtime import tables
from spark_impl.runtime.versions import BATCH
from straggler.strategies.join import cases
from tests.harness.chain_threads import ThreadSession, chains_on_threads

CASES = 6
FAULTS = (Fault("restart", 0), Fault("kill", 1), Fault("kill", 3))


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Iterator[ThreadSession]:
    """Yield a stand-in for a Spark session."""
    monkeypatch.setattr(tables, "TIDIED", 2)
    with chains_on_threads() as session:
        yield session


def drawn_chains(seed: int) -> dict[str, Workload]:
    """Return chains of all sizes, the last ones with many pairs and epochs; drivers are killed."""
    long = long_case(3, seed, epochs=7)
    alone = replace(JoinConfig.from_json(long.config), workers=1)
    drawn = [*collect(cases(), CASES, seed), long.with_(config=alone.to_json()), long]
    named = {f"chain {number}": case for number, case in enumerate(drawn)}
    return {name: case.with_(faults=FAULTS, flush=True) for name, case in named.items()}


def test_a_chain_that_is_killed_and_resumes_finds_every_pair_once(
    session: ThreadSession, tmp_path: Path, seed: int
) -> None:
    chains, killed, few = drawn_chains(seed), list[int](), 0
    traces = run_workloads(session, chains, tmp_path, killed.append)  # type: ignore[arg-type]  # a stand-in
    for number, (name, case) in enumerate(chains.items()):
        trace, expected = traces[name], Recomputation(case.to_json())
        assert Counter(each[:3] for each in trace.of(Match)) == expected.pairs, name
        assert Counter(trace.of(Rejected)) == Counter(expected.rejected), name
        recording = validate_recording(case, trace)
        assert recording.outcome is Outcome.HOLDS, (recording.sentence, recording.witness)
        check_epochs(tmp_path / str(number), trace)
        few += check_punctuation(tmp_path / str(number), expected, trace)
    check_readers(tmp_path / str(len(chains) - 1), [*traces.values()][-1])
    assert set(killed) == {1, 3}
    assert few > 100, "no pair was owed for longer than complete_us permits"


def check_epochs(store: Path, trace: Trace) -> None:
    """Assert that the figures of each epoch are those of the recorded steps."""
    found = Counter((each.batch, each.query) for each in trace.of(Match))
    admitted, held = Counter[tuple[int, str]](), Counter[tuple[int, str]]()
    for admit in trace.of(Admit):
        admitted[admit.epoch, admit.stream] += admit.tuples
    for quiet in trace.of(Quiet):
        held[quiet.epoch, "R"] += quiet.r_held
        held[quiet.epoch, "S"] += quiet.s_held
    epochs = snapshots(store)
    assert [each.epoch for each in epochs] == list(range(len(epochs)))
    assert [each.flush for each in epochs] == [False] * (len(epochs) - 1) + [True]
    for each in epochs:
        workers = sum(quiet.epoch == each.epoch for quiet in trace.of(Quiet))
        assert each.workers == workers
        assert each.matches == {name: found[each.epoch, name] for name in each.matches}
        assert each.admitted == tuple(admitted[each.epoch, stream] for stream in "RS")
        assert each.held == tuple(held[each.epoch, stream] for stream in "RS")
    assert sum(each.rejected for each in epochs) == len(trace.of(Rejected))


def check_readers(path: Path, trace: Trace) -> None:
    """Assert that a reader finds the pairs of the epochs that it asks for, merged or not."""
    store, view = load_store(path)
    epochs = len(store.commits(view))
    for first, last in product(range(0, epochs, 3), range(epochs)):
        files = [each for each in view.of("matches") if each.may_hold(BATCH, first, last)]
        where = (pc.field(BATCH) >= first) & (pc.field(BATCH) <= last)
        rows = store.read(files, "matches", where).to_pylist()
        found = Counter(tuple(row.values()) for row in rows)
        wanted = range(first, last + 1)
        assert found == Counter(match for match in trace.of(Match) if match.batch in wanted)


def check_punctuation(store: Path, expected: Recomputation, trace: Trace) -> int:
    """Assert that pairs below the punctuation have come out; return how many were below one."""
    times_us = {
        (stream, each.identity): each.event_time_us
        for stream, tuples in expected.tuples.items()
        for each, _ in tuples
    }
    below = 0
    place, view = load_store(store)
    for done in place.commits(view):
        for match in trace.of(Match):
            last_us = max(times_us["R", match.r_id], times_us["S", match.s_id])
            if last_us < done.complete_us:
                assert match.batch <= done.epoch
                below += not done.flush
    return below
