"""Tests that start Spark and tests that do without are in different processes, at the same time."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace

import pytest

from properties.sharing import SparkApart, starts_spark

FILES = {
    "room/test_model.py": "def test(): ...",
    "room/test_spark.py": "def test(spark: SparkSession): ...",
    "tools/test_kill.py": "pytestmark = needs_proc",
    "tools/test_cli_spark.py": "def test(): ...",
    "tools/test_cli.py": "def test(): ...",
}
SPARK = ("room/test_spark.py", "tools/test_kill.py", "tools/test_cli_spark.py")


class Process:
    """Runs a test as soon as it knows the one that comes next, as a worker of xdist does."""

    def __init__(self, name: str) -> None:
        self.gateway = SimpleNamespace(id=name)
        self.shutting_down = False
        self.given: list[int] = []
        self.ran: list[int] = []

    def send_runtest_some(self, indices: list[int]) -> None:
        self.given += indices

    def shutdown(self) -> None:
        self.shutting_down = True

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


def shared_out(folder: Path, tests: Mapping[str, int], processes: int) -> Iterator[list[str]]:
    """What each process ran, when nothing more happens."""
    config = SimpleNamespace(
        getvalue=lambda _: ["popen"] * processes,
        rootpath=folder,
        option=SimpleNamespace(loadscopereorder=True),
    )
    collected = [f"{name}::test_{n}" for name, number in tests.items() for n in range(number)]
    nodes = [Process(f"gw{n}") for n in range(processes)]
    scheduler = SparkApart(config, None)
    for node in nodes:
        scheduler.add_node(node)
        scheduler.add_node_collection(node, collected)
    scheduler.schedule()
    busy = True
    while busy:
        busy = False
        for node in nodes:
            test = node.run_one()
            if test is not None:
                scheduler.mark_test_complete(node, test)
                busy = True
    assert sorted(each for node in nodes for each in node.ran) == list(range(len(collected)))
    assert all(node.shutting_down for node in nodes)
    return ([collected[each].partition("::")[0] for each in node.ran] for node in nodes)


@pytest.mark.parametrize("processes", [2, 3, 4])
@pytest.mark.parametrize("many", FILES)
def test_no_process_that_started_spark_runs_anything_else(
    folder: Path, many: str, processes: int
) -> None:
    tests = {name: 30 if name == many else 3 for name in FILES}
    first, *others = shared_out(folder, tests, processes)
    for ran in (first, *others):
        kinds = [name in SPARK for name in ran]
        assert kinds == sorted(kinds), "Spark comes last"
    assert first[0] not in SPARK
    assert others[0][0] in SPARK


def test_a_folder_that_starts_spark_stays_in_one_process(folder: Path) -> None:
    for ran in shared_out(folder, dict.fromkeys(FILES, 5), 3):
        assert sum(name in {"tools/test_kill.py", "tools/test_cli_spark.py"} for name in ran) in {
            0,
            10,
        }


@pytest.mark.parametrize("name", ["room/test_model.py", "room/test_spark.py"])
@pytest.mark.parametrize("processes", [1, 2])
def test_one_kind_alone_is_run(folder: Path, name: str, processes: int) -> None:
    ran = shared_out(folder, {name: 4}, processes)
    assert [each for part in ran for each in part] == [name] * 4


def test_without_spark_all_processes_share(folder: Path) -> None:
    ran = list(shared_out(folder, {"room/test_model.py": 9, "tools/test_cli.py": 8}, 2))
    assert [len(part) for part in ran] == [9, 8]
