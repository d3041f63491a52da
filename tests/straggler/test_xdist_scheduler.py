"""Tests that start Spark run beside tests that do without, and no process is idle at the end."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import pytest

from tests.harness import xdist_scheduler
from tests.harness.xdist_scheduler import SparkAside, starts_spark
from tests.house.repository import ROOT

FILES = {
    "room/test_model.py": "def test(): ...",
    "room/test_spark.py": "def test(spark: SparkSession): ...",
    "tools/test_kill.py": "pytestmark = needs_proc",
    "tools/test_cli_spark.py": "def test(): ...",
    "tools/test_cli.py": "def test(): ...",
}
SPARK = ("room/test_spark.py", "tools/test_kill.py", "tools/test_cli_spark.py")


class Crash(NamedTuple):
    """A process ends in a test, and another one takes its place."""

    process: str
    test: int
    """Position among the tests of this process, from 1."""
    is_late: bool
    """Whether the new process begins when all others have ended."""


class Process:
    """A worker of xdist: it runs a test when it knows the next one."""

    def __init__(self, name: str) -> None:
        self.gateway = SimpleNamespace(id=name)
        self.shutting_down = False
        self.given: list[int] = []
        self.ran: list[int] = []

    def send_runtest_some(self, indices: list[int]) -> None:
        self.given += indices

    def shutdown(self) -> None:
        self.shutting_down = True

    def crash(self) -> None:
        self.shutting_down = True
        del self.given[len(self.ran) :]

    def run_one(self) -> int | None:
        left = self.given[len(self.ran) :]
        if len(left) > (0 if self.shutting_down else 1):
            self.ran.append(left[0])
            return left[0]
        return None


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def test_files_that_start_spark_are_known(folder: Path) -> None:
    assert {name for name in FILES if starts_spark(folder / name)} == set(SPARK)


def begin(
    folder: Path, tests: Mapping[str, int], processes: int
) -> tuple[SparkAside, list[Process], list[str]]:
    """Return the scheduler, its processes with their first tests, and the collected tests."""
    config = SimpleNamespace(
        getvalue=lambda _: ["popen"] * processes,
        rootpath=folder,
        option=SimpleNamespace(loadscopereorder=True),
    )
    collected = [f"{name}::test_{n}" for name, number in tests.items() for n in range(number)]
    nodes = [Process(f"gw{n}") for n in range(processes)]
    scheduler = SparkAside(config, None)
    for node in nodes:
        start(scheduler, node, collected)
    scheduler.schedule()
    return scheduler, nodes, collected


def distribute(
    folder: Path, tests: Mapping[str, int], processes: int, crash: Crash | None = None
) -> list[list[str]]:
    """Return the files of the tests that each process ran, after all tests are done."""
    scheduler, nodes, collected = begin(folder, tests, processes)
    run(scheduler, nodes, collected, crash)
    if crash is not None:
        (crashed,) = (node for node in nodes if node.gateway.id == crash.process)
        assert len(crashed.ran) == crash.test, "the process never reached this test"
        if crash.is_late:
            nodes.append(Process("late"))
            start(scheduler, nodes[-1], collected)
            scheduler.schedule()
            run(scheduler, nodes, collected)
    assert sorted(each for node in nodes for each in node.ran) == list(range(len(collected)))
    assert all(node.shutting_down for node in nodes)
    return [[collected[each].partition("::")[0] for each in node.ran] for node in nodes]


def start(scheduler: SparkAside, node: Process, collected: Sequence[str]) -> None:
    scheduler.add_node(node)
    scheduler.add_node_collection(node, collected)


def run(
    scheduler: SparkAside,
    nodes: list[Process],
    collected: Sequence[str],
    crash: Crash | None = None,
) -> None:
    """Let processes run tests by turns, as long as any of them does."""
    busy = True
    while busy:
        busy = False
        for node in list(nodes):
            test = node.run_one()
            if test is None:
                continue
            busy = True
            if crash is None or (node.gateway.id, len(node.ran)) != crash[:2]:
                scheduler.mark_test_complete(node, test)
                continue
            node.crash()
            assert scheduler.remove_node(node) == collected[test]
            if not crash.is_late:
                nodes.append(Process("at once"))
                start(scheduler, nodes[-1], collected)
                scheduler.schedule()


@pytest.mark.parametrize("processes", [2, 3, 4])
@pytest.mark.parametrize("many", FILES)
def test_the_first_process_starts_spark_last_and_all_others_first(
    folder: Path, many: str, processes: int
) -> None:
    tests = {name: 30 if name == many else 3 for name in FILES}
    for number, ran in enumerate(distribute(folder, tests, processes)):
        kinds = [name in SPARK for name in ran]
        assert kinds == sorted(kinds, reverse=number > 0)


def test_a_process_takes_the_other_kind_when_its_own_is_used_up(folder: Path) -> None:
    plain = {"room/test_model.py": 3, "tools/test_cli.py": 3}
    first, second = distribute(folder, {**plain, **dict.fromkeys(SPARK, 9)}, 2)
    assert set(first) > set(plain)
    assert set(second) < set(SPARK)
    spark = {"room/test_spark.py": 3}
    first, second = distribute(folder, {**dict.fromkeys(plain, 9), **spark}, 2)
    assert set(first) < set(plain)
    assert set(second) > set(spark)


def test_the_longest_files_come_first(folder: Path) -> None:
    longest = [name for name in xdist_scheduler.LONGEST if starts_spark(ROOT / name)]
    for name in longest:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("pytestmark = needs_proc", encoding="utf-8")
    _, second = distribute(folder, {**dict.fromkeys(FILES, 99), **dict.fromkeys(longest, 3)}, 2)
    assert list(dict.fromkeys(second))[: len(longest)] == longest


@pytest.mark.parametrize("is_late", [False, True])
@pytest.mark.parametrize("test", [1, 2, 5, 6])
@pytest.mark.parametrize("process", ["gw0", "gw1", "gw2"])
@pytest.mark.parametrize("many", ["room/test_model.py", "tools/test_kill.py"])
def test_another_process_runs_the_tests_of_a_crashed_one(
    folder: Path, many: str, process: str, test: int, is_late: bool
) -> None:
    tests = {name: 30 if name == many else 6 for name in FILES}
    distribute(folder, tests, 3, Crash(process, test, is_late))


def test_two_processes_may_crash_before_another_one_has_begun(folder: Path) -> None:
    scheduler, (first, second, _), collected = begin(folder, dict.fromkeys(FILES, 5), 3)
    scheduler.add_node(Process("slow"))  # has not reported its tests yet
    for node in (first, second):
        test = node.run_one()
        assert test is not None
        assert scheduler.remove_node(node) == collected[test]
    assert len(scheduler.workqueue) == 4, "four files"


def test_a_file_stays_in_one_process(folder: Path) -> None:
    for ran in distribute(folder, dict.fromkeys(FILES, 5), 3):
        assert set(Counter(ran).values()) == {5}


@pytest.mark.parametrize("name", ["room/test_model.py", "room/test_spark.py"])
@pytest.mark.parametrize("processes", [1, 2])
def test_one_kind_alone_is_run(folder: Path, name: str, processes: int) -> None:
    ran = distribute(folder, {name: 4}, processes)
    assert [each for part in ran for each in part] == [name] * 4


def test_without_spark_all_processes_share(folder: Path) -> None:
    ran = list(distribute(folder, {"room/test_model.py": 9, "tools/test_cli.py": 8}, 2))
    assert [len(part) for part in ran] == [9, 8]
