"""The sweep itself: what is run and not run again, failures, and jobs on processes."""

import json
import os
import re
import signal
from collections.abc import Iterator, Sequence
from contextlib import closing
from multiprocessing import active_children
from pathlib import Path
from time import sleep
from typing import Any

import pytest

from model.checking.claims import Outcome
from sim.grouping.settings import from_settings
from sim.sweep.engine import Ended, JobFinished, Judged, Started, Sweep
from sim.sweep.experiment import Experiment, Reproduction
from sim.sweep.jobs import (
    ENDED,
    Done,
    Job,
    jobs_of,
    perform,
    run_on_processes,
)
from sim.sweep.results import Results, record_of
from sim.sweep.runs import digest_of_sources, runs_of
from sim.sweep.store import Store, WriteFailed, write_atomically
from tests.sim.experiments import small


def here(jobs: Sequence[Job]) -> Iterator[Done]:
    """Run jobs in this process, the last job first."""
    return map(perform, reversed(jobs))


def swept(folder: Path, *experiments: Experiment, **other: Any) -> tuple[list[Any], list[Results]]:
    """Run a quick sweep; return its events and results."""
    folder.mkdir(exist_ok=True)
    asked = experiments or (small(),)
    events = list(Sweep(asked, "quick", Store(folder), other.pop("mapper", here), **other).events())
    assert isinstance(events[0], Started)
    assert isinstance(events[-1], Ended)
    return events, [event.results for event in events if isinstance(event, Judged)]


def test_a_row_is_a_run_in_the_order_of_the_grid(tmp_path: Path) -> None:
    _, (results,) = swept(tmp_path)
    columns = results.columns
    assert list(columns) == [
        *("experiment", "effort", "run", "seed", "policy", "slower"),
        *("share", "mean_rho", "scenario_name"),
    ]
    assert columns["policy"] == ["shuffle"] * 4 + ["tag"] * 4
    assert columns["slower"] == [1, 1, 2.5, 2.5] * 2
    assert columns["seed"] == [0, 1] * 4
    assert columns["scenario_name"] == columns["policy"]
    settings = {**small().grids["quick"].base, "policy": "tag", "speeds": "1,0.4"}
    summary = from_settings(settings, 1).summary
    assert columns["mean_rho"][-1] == summary["mean_rho"]
    assert columns["share"][-1] == float(summary["served_hz"]) / float(summary["ideal_hz"])
    assert (results.outcome, results.verdict) == (Outcome.HOLDS, Reproduction.REPRODUCED)


def test_finished_runs_are_not_done_again(tmp_path: Path) -> None:
    whole, (first,) = swept(tmp_path / "whole")
    assert whole[0][2:] == (8, 0, 0, 8)

    def dies(jobs: Sequence[Job]) -> Iterator[Done]:
        yield from map(perform, jobs[:3])
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        swept(tmp_path / "part", mapper=dies)
    events, (second,) = swept(tmp_path / "part")
    assert events[0][2:] == (8, 0, 3, 5)
    assert len([each for each in events if isinstance(each, JobFinished)]) == 5
    assert second == first
    events, (third,) = swept(tmp_path / "part", mapper=must_not_run)
    assert events[0][2:] == (8, 0, 8, 0)
    assert third == first
    events, _ = swept(tmp_path / "part", is_fresh=True)
    assert events[0][2:] == (8, 0, 0, 8)


def must_not_run(jobs: Sequence[Job]) -> Iterator[Done]:
    raise AssertionError(f"{len(jobs)} jobs were done again")


def test_a_record_that_is_damaged_is_no_record(tmp_path: Path) -> None:
    """A damaged record is cut off, of another kind, changed by hand, or that of another run."""
    _, (first,) = swept(tmp_path)
    records = sorted((tmp_path / "runs").iterdir())
    whole = records[0].read_text(encoding="utf-8")
    changed = re.sub(r'"mean_rho": [^,]+', '"mean_rho": 1.5', whole)
    assert changed != whole
    texts = ("", "{", "[]", '{"figures": 1}', whole[:-9], changed, records[7].read_text())
    for text, record in zip(texts, records, strict=False):
        record.write_text(text, encoding="utf-8")
    events, (again,) = swept(tmp_path)
    assert events[0][2:] == (8, 0, 1, 7)
    assert again == first
    assert records[0].read_text(encoding="utf-8") == whole


def test_a_failed_write_leaves_no_temporary_file(tmp_path: Path) -> None:
    (tmp_path / "small.json").mkdir()
    with pytest.raises(WriteFailed, match=r"small\.json' cannot be written: Is a directory"):
        write_atomically(tmp_path / "small.json", "{}")
    assert [path.name for path in tmp_path.iterdir()] == ["small.json"]
    (tmp_path / "runs").write_text("no folder", encoding="utf-8")
    with pytest.raises(WriteFailed, match=r"runs/[0-9a-f]{32}\.json' cannot be written: "):
        swept(tmp_path)


def test_other_measures_and_expectations_cost_nothing(tmp_path: Path) -> None:
    swept(tmp_path)
    other = small(measures=["mean_rho", "largest_rho"], expect=[])
    _, (results,) = swept(tmp_path, other, mapper=must_not_run)
    assert len(results.columns["largest_rho"]) == 8
    assert results.verdict is None


def test_arrivals_are_shared_and_figures_are_the_same(tmp_path: Path) -> None:
    _, (alone,) = swept(tmp_path / "alone")
    fanned = small(fan="policy")
    events, (together,) = swept(tmp_path / "together", fanned)
    assert events[0][2:] == (8, 0, 0, 4)
    assert together.columns == alone.columns
    (job,) = jobs_of(fanned, runs_of(fanned, "quick")[:1])
    assert job.values == ("shuffle",)
    assert perform(job).figures[0]["mean_rho"] == alone.columns["mean_rho"][0]


# ---------------------------------------------------------------------------------------- failures


def test_the_worst_verdict_counts_and_only_when_all_are_met(tmp_path: Path) -> None:
    expect = {"says": "x", "measure": "share", "at_least": -1000, "verdict": "reproduced"}
    refuted = {**expect, "verdict": "refuted"}
    _, (results,) = swept(tmp_path, small(expect=[refuted, expect]))
    assert results.verdict is Reproduction.REFUTED
    stored = json.loads(json.dumps(record_of(results)))["expectations"]
    for finding, record in zip(results.findings, stored, strict=True):
        for cell, each in zip(finding.cells, record["cells"], strict=True):
            assert cell.interval is not None
            figures = {name: getattr(cell.interval, name) for name in ("estimate", "low", "high")}
            assert each == {"label": cell.label, **figures, "outcome": "holds"}
        assert record["outcome"] == "holds"
    broken = {**expect, "at_least": 100}
    events, (results,) = swept(tmp_path, small(expect=[refuted, broken]))
    assert (results.outcome, results.verdict) == (Outcome.BROKEN, None)
    assert events[-1].outcome is Outcome.BROKEN


# --------------------------------------------------------------------------------------- addresses


def test_an_address_follows_the_code_but_not_that_of_other_rooms(tmp_path: Path) -> None:
    names = ("model/rules.py", "model/slack/a.py", "sim/kernel/a.py", "sim/grouping/a.py")
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("", encoding="utf-8")

    def digest(room: str) -> str:
        return digest_of_sources.__wrapped__(room, tmp_path)

    for name, changed in zip(names, ("both", "slack", "both", "grouping"), strict=True):
        before = {room: digest(room) for room in ("slack", "grouping")}
        (tmp_path / name).write_text("changed", encoding="utf-8")
        for room, old in before.items():
            assert (digest(room) != old) == (changed in (room, "both")), (name, room)


def test_every_setting_and_the_seed_make_an_address() -> None:
    runs = runs_of(small(), "full")
    addresses = [run.address for run in runs]
    assert len(set(addresses)) == len(runs) == 12
    assert set(addresses).isdisjoint(
        run.address for run in runs_of(small(base={"load": "0.5"}), "full")
    )
    later = [run.address for run in runs_of(small(), "full", (1, 2, 3))]
    assert len(set(addresses).intersection(later)) == 8


def test_what_is_in_a_file_makes_an_address(tmp_path: Path) -> None:
    file, found = tmp_path / "keys.txt", set[tuple[str, ...]]()
    asked = small(base={"scenario": "words", "keys_file": str(file)})
    contents = (None, b"", b"a\n", b"b\n", b"a\nb", b"\xff")
    for content in contents:
        if content is not None:
            file.write_bytes(content)
        addresses = tuple([run.address for run in runs_of(asked, "quick")])
        assert tuple([run.address for run in runs_of(asked, "quick")]) == addresses
        found.add(addresses)
    assert len(found) == len(contents)


# ------------------------------------------------------------------------------- jobs on processes


def jobs() -> list[Job]:
    return list(jobs_of(small(fan="policy"), runs_of(small(fan="policy"), "quick")))


def dies_of_seed_1(job: Job) -> Done:
    """Exit at once, or be killed as a process that uses too much memory is."""
    if job.seed == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return perform(job)


def test_a_process_that_ends_takes_its_job_along_and_no_other() -> None:
    found = list(run_on_processes(jobs(), 2, dies_of_seed_1))
    assert sorted(done.job.seed for done in found) == [0, 0, 1, 1]
    for done in found:
        expected = f"{ENDED} (exit code -9)" if done.job.seed == 1 else ""
        assert (done.error, bool(done.figures)) == (expected, done.job.seed == 0)


def sleeps(job: Job) -> Done:
    sleep(600 * job.seed)
    return perform(job)


def test_closing_the_iterator_ends_the_processes() -> None:
    found: Iterator[Done] = run_on_processes(jobs(), 2, sleeps)
    with closing(found):  # type: ignore[type-var]  # the iterator is a generator
        assert next(found).job.seed == 0
        assert len(active_children()) == 2
    assert not active_children()
