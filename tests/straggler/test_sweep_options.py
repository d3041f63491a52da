"""``straggler sweep`` with other settings and seeds, and what it shows of an experiment."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from sim.sweep.jobs import Done as Finished
from sim.sweep.jobs import Job, perform
from sim.sweep.reading import find_file
from straggler.cli import sweep as command
from straggler.sweeps.files import read_table
from tests.sim.experiments import SMALL
from tests.straggler.command import Straggler, assert_refused


@pytest.fixture(autouse=True)
def in_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run jobs in this process, because other processes are slow to start."""

    def here(jobs: Sequence[Job], processes: int) -> Iterator[Finished]:
        return map(perform, jobs)

    monkeypatch.setattr(command, "run_on_processes", here)


def test_a_sweep_runs_with_other_settings_and_seeds(straggler: Straggler) -> None:
    Path("my-small.toml").write_text(SMALL.replace('"small"', '"my-small"'), encoding="utf-8")
    usual = straggler("sweep", "my-small.toml", "--out", "usual")
    changes = ("--set", "keys=5", "--set", "tuples=200", "--seeds", "7,1")
    done = straggler("sweep", "my-small.toml", *changes)
    assert (usual.code, done.code) == (0, 0), done
    columns = read_table(Path("sweeps/my-small-quick.parquet"))
    before = read_table(Path("usual/my-small-quick.parquet"))
    assert set(columns["seed"]) == {1, 7}
    assert columns["policy"] == before["policy"]
    assert columns["share"] != before["share"]
    record = json.loads(Path("sweeps/my-small-quick.json").read_text(encoding="utf-8"))
    again = "straggler sweep my-small.toml --quick --seeds 7,1 --set keys=5 --set tuples=200"
    assert record["again"] == again
    assert straggler(*again.split()[1:]).err.startswith("1 experiment, quick: 8 runs, 8 of them")


def test_show_prints_the_file_of_an_experiment(straggler: Straggler) -> None:
    done = straggler("sweep", "--show", "grouping-speeds")
    assert (done.code, done.err) == (0, "")
    assert done.out == find_file("grouping-speeds").read_text(encoding="utf-8")
    assert not Path("sweeps").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--seeds", "1,x"], ["--seeds is '1,x'", "different integers >= 0"]),
        (["--seeds", "1,1"], ["--seeds is '1,1'"]),
        (["--seeds", "-1"], ["--seeds is '-1'"]),
        (["--seeds", ""], ["--seeds is ''"]),
        (["--seeds", "1", "--seed", "2"], ["--seed is not allowed with --seeds"]),
        (["--set", "keyz=5"], ["--set: setting is 'keyz'", "did you mean 'keys'?"]),
        (["--set", "keys=no"], ["--set: keys is 'no'"]),
        (["--set", "keys"], ["--set is 'keys'; it must be KEY=VALUE"]),
        (["--set", "policy=tag"], ["policy is 'tag', but small varies it: factor policy"]),
        (["--set", "speeds=1,1"], ["speeds is '1,1', but small varies it: factor slower"]),
        (["--show", "grouping-sped"], ["--show: experiment is 'grouping-sped'", "did you mean"]),
        (["--show", "no.toml"], ["--show: 'no.toml' cannot be read"]),
    ],
)
def test_impossible_changes_are_refused(
    straggler: Straggler, arguments: list[str], words: list[str]
) -> None:
    Path("small.toml").write_text(SMALL, encoding="utf-8")
    assert_refused(straggler("sweep", "small.toml", *arguments), *words)
    assert not Path("sweeps").exists()
