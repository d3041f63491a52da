"""Judges drawn mutations of our packages by the tests that can see them: ``make mutants``.

Known tools mutate modules inside the process that runs the tests; Spark's Python processes import
their own. Here a copy of the repository is mutated on disk, and pytest runs in that copy. Nothing
is imported from elsewhere: pytest refuses to judge if it is.

A mutation meets, cheapest first, the property tests that call its function, those that start Spark,
and then all other tests in the same way. ``called_functions`` has recorded who calls what; on
Spark, where calls are not seen, the tests of the room are asked. The first failure ends it.
Verdicts are appended to a file, one line each, so that an interrupted run goes on where it was.
"""

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.util import cache_from_source
from pathlib import Path
from typing import NamedTuple

from tests.harness.xdist_scheduler import starts_spark
from tests.quality.mutations import KINDS, PACKAGES, Mutation, drawn, summarised

ROOT = Path(__file__).resolve().parents[2]
VERDICTS = ROOT / "docs" / "mutants.jsonl"
EQUIVALENT = Path(__file__).with_name("equivalent_mutants.toml")
CALLS = ROOT / "build" / "calls"
LIMIT_S = 600
"""Longest time (s) of the tests of one stage; a mutation that takes longer counts as undecided."""
TEST_LIMIT_S = 150
"""Longest time (s) of a test without Spark; one that takes longer fails, as in an endless loop."""
KILLED, SURVIVED, UNDECIDED = "killed", "survived", "undecided"
RECORDED = (
    "properties",
    *(
        f"tests/{name}"
        for name in ("model", "sim", "quality", "spark_impl", "straggler", "properties")
    ),
)
_PAGES = "tests/straggler/test_pages.py::"
"""Tests that see values outside of functions: pages show defaults and tables."""
_LEFT_OUT = (".git", ".hypothesis", "__pycache__", ".*_cache", "build", "sweeps", "counterexamples")
_STORED = "tests/golden/test_golden.py"
"""Tests that open stores of all rooms."""
_ROOMS = {"windows": ("slack", "watermark"), "runtime": ("watermark", "join")}
"""Rooms whose tests on Spark see a part that several rooms share."""
_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+?\.py\S*(?:\[.*?\])?)(?: - |$)", re.MULTILINE)


class Calls(NamedTuple):
    """Tests without Spark, with the functions that they call."""

    seconds: Mapping[str, float]
    callers: Mapping[str, frozenset[str]]
    """Tests by function (``path:line``) and by file."""

    @classmethod
    def read(cls, folder: Path) -> "Calls":
        """Read all recordings of a folder."""
        seconds: dict[str, float] = {}
        callers: dict[str, set[str]] = {}
        for path in sorted(folder.glob("*.json")):
            for test, (took_s, functions) in json.loads(path.read_text("utf-8")).items():
                seconds[test] = took_s
                for function in functions:
                    for name in (function, function.partition(":")[0]):
                        callers.setdefault(name, set()).add(test)
        return cls(seconds, {name: frozenset(tests) for name, tests in callers.items()})

    def of(self, mutation: Mutation, root: Path) -> frozenset[str]:
        """Return the tests that call the mutated function, or else its module.

        For a module without functions these are the tests that call modules that import it.
        """
        line = mutation.function.partition(":")[2]
        if named := self.callers.get(f"{mutation.file}:{line}"):
            return named
        files = {mutation.file} & self.callers.keys() or importers(mutation.file, root)
        pages = {test for test in self.seconds if test.startswith(_PAGES)}
        return frozenset(pages).union(*(self.callers.get(file, ()) for file in files))


def importers(file: str, root: Path) -> set[str]:
    """Return the files of our packages that import from a module."""
    imports = f"from {file.removesuffix('.py').replace('/', '.')} import"
    return {
        path.relative_to(root).as_posix()
        for package in PACKAGES
        for path in (root / package).rglob("*.py")
        if imports in path.read_text(encoding="utf-8")
    }


class Stage(NamedTuple):
    """Tests that judge together: their kind, and their names in order."""

    name: str
    tests: Sequence[str]


def stages(mutation: Mutation, calls: Calls, kills: Mapping[str, int], root: Path) -> list[Stage]:
    """Return the tests that can see a mutation, cheapest first, by stage.

    Tests that killed many mutations come first, and quick ones before slow ones.
    """
    quick = sorted(
        calls.of(mutation, root), key=lambda test: (-kills.get(test, 0), calls.seconds[test])
    )
    slow = list(_on_spark(mutation, root))
    properties = "properties/"
    return [
        Stage("properties", [each for each in quick if each.startswith(properties)]),
        Stage("properties on Spark", [each for each in slow if each.startswith(properties)]),
        Stage("tests", [each for each in quick if not each.startswith(properties)]),
        Stage("tests on Spark", [each for each in slow if not each.startswith(properties)]),
    ]


def _on_spark(mutation: Mutation, root: Path) -> Iterator[str]:
    """Yield the test files that start Spark and can see a mutation."""
    if mutation.file.startswith("model/vocabulary/"):
        room = mutation.file.split("/")[2].removesuffix(".py")
    elif mutation.file.startswith("spark_impl/"):
        room = mutation.file.split("/")[1].removesuffix(".py")
    else:
        return
    folders = (root / "properties", root / "tests" / "properties")
    for path in [path for folder in folders for path in sorted(folder.rglob("test_*.py"))]:
        owner = path.parent.name
        if starts_spark(path) and owner in (room, *_ROOMS.get(room, ()), "properties"):
            yield path.relative_to(root).as_posix()
    for path in sorted((root / "tests" / "spark_impl").glob("test_*.py")):
        if starts_spark(path) and f"spark_impl.{room}" in path.read_text(encoding="utf-8"):
            yield path.relative_to(root).as_posix()
    if (root / _STORED).exists() and mutation.file.startswith("spark_impl/"):
        yield _STORED


class Judge:
    """Runs tests on mutations of a copy of the repository."""

    def __init__(
        self, copy: Path, calls: Calls, *, kills: Iterable[str] = (), on_spark: bool = True
    ) -> None:
        """Take the tests that killed earlier mutations as ``kills``: these are asked first."""
        self._copy = copy
        self._calls = calls
        self._on_spark = on_spark
        self._kills = Counter(kills)
        self._sound: dict[str, bool] = {}
        """Whether a test that failed passes without a mutation."""

    def judge(self, mutation: Mutation) -> dict[str, object]:
        """Return the verdict on a mutation: what became of it, and by which test of which stage."""
        begun = time.monotonic()
        asked, by, test, left_out = 0, "", "", False
        for stage in stages(mutation, self._calls, self._kills, self._copy):
            if stage.name.endswith("on Spark") and not self._on_spark:
                left_out = left_out or bool(stage.tests)
                continue
            asked += len(stage.tests)
            outcome, test = self._ask(mutation, stage.tests)
            if outcome != SURVIVED:
                by = stage.name
                break
        else:
            outcome = UNDECIDED if left_out else SURVIVED
        self._kills[test] += outcome == KILLED
        took_s = round(time.monotonic() - begun, 1)
        return {"verdict": outcome, "by": by, "test": test, "asked": asked, "seconds": took_s}

    def _ask(self, mutation: Mutation, tests: Sequence[str]) -> tuple[str, str]:
        """Return what some tests say of a mutation; failures that come without it do not count."""
        while True:
            tests = [each for each in tests if self._sound.get(each, True)]
            with self._mutated(mutation):
                outcome, test = self._run(tests)
            if outcome != KILLED or self._is_sound(test):
                return outcome, test

    def _is_sound(self, test: str) -> bool:
        """Return whether a test passes without a mutation; asked once of each."""
        if test not in self._sound:
            self._sound[test] = self._run([test])[0] == SURVIVED
        return self._sound[test]

    @contextmanager
    def _mutated(self, mutation: Mutation) -> Iterator[None]:
        path = self._copy / mutation.file
        right = path.read_bytes()
        self._write(path, mutation.apply(right))
        try:
            yield
        finally:
            self._write(path, right)

    def _write(self, path: Path, source: bytes) -> None:
        path.write_bytes(source)
        # Python compares only seconds and size with those of the compiled file.
        Path(cache_from_source(str(path))).unlink(missing_ok=True)

    def _run(self, tests: Sequence[str]) -> tuple[str, str]:
        """Return whether a test fails, and which."""
        if not tests:
            return SURVIVED, ""
        listed = self._copy / "tests_of.json"
        listed.write_text(json.dumps(tests), encoding="utf-8")
        files = list(dict.fromkeys(each.partition("::")[0] for each in tests))
        limit = [] if starts_spark(self._copy / files[0]) else ["-o", f"timeout={TEST_LIMIT_S}"]
        try:
            code, said = run_pytest(
                self._copy, "-x", f"--tests-of={listed}", *limit, *files, limit_s=LIMIT_S
            )
        except subprocess.TimeoutExpired:
            return UNDECIDED, ""
        if code in (0, 5):
            return SURVIVED, ""
        if "was imported from" in said:
            raise RuntimeError(said)
        failed = _FAILED.search(said)
        # What fails before any test is collected names none.
        return KILLED, failed[1] if failed else tests[0]


def run_pytest(folder: Path, *arguments: str, limit_s: float | None = None) -> tuple[int, str]:
    """Run pytest in a folder with the packages there; return its exit code and what it says.

    Raise ``TimeoutExpired`` if it takes longer than ``limit_s``.
    """
    command = [sys.executable, "-m", "pytest", "-p", "tests.harness.called_functions"]
    command += ["-p", "no:xdist", "--hypothesis-profile=ci", "-q", "--tb=no", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(folder), "COLUMNS": "1000"}
    with subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            said, _ = process.communicate(timeout=limit_s)
        finally:
            with suppress(ProcessLookupError):  # what it started may have survived it
                os.killpg(process.pid, signal.SIGKILL)
    return process.returncode, said


@contextmanager
def copied(root: Path) -> Iterator[Path]:
    """Yield a temporary copy of the repository, with a link to its environment."""
    with tempfile.TemporaryDirectory(prefix="straggler-mutants-") as folder:
        copy = Path(folder, "copy")
        ignored = shutil.ignore_patterns(*_LEFT_OUT, ".venv", ".engines", "*.jsonl")
        shutil.copytree(root, copy, ignore=ignored)
        (copy / ".venv").symlink_to((root / ".venv").resolve())
        yield copy


def record_calls(root: Path, folder: Path) -> None:
    """Record which functions each test without Spark calls, one folder of tests after another."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in RECORDED:
        target = folder / f"{name.replace('/', '_')}.json"
        if target.exists():
            continue
        print(f"recording which functions {name} calls ...", flush=True)  # noqa: T201 (to the person who waits)
        files = [
            path.relative_to(root).as_posix()
            for path in sorted((root / name).rglob("test_*.py"))
            if not starts_spark(path)
        ]
        with copied(root) as copy:
            run_pytest(copy, f"--record-calls={target}", "--hypothesis-profile=dev", *files)


def read_verdicts(path: Path) -> dict[str, dict[str, object]]:
    """Return the last verdict on each mutation."""
    if not path.exists():
        return {}
    lines = path.read_text(encoding="utf-8").splitlines()
    # The last line may be half-written, by a run that was killed.
    found = [json.loads(line) for line in lines if line.endswith("}")]
    return {str(each["name"]): each for each in found}


def is_killed_by_properties(verdict: Mapping[str, object]) -> bool:
    """Return whether ``pytest properties`` notices the mutation of a verdict."""
    return verdict["verdict"] == KILLED and str(verdict["by"]).startswith("properties")


def write_verdict(path: Path, mutation: Mutation, verdict: Mapping[str, object], seed: int) -> None:
    """Append a verdict to a file."""
    line = {
        "name": mutation.name,
        "file": mutation.file,
        "function": mutation.function.partition(":")[0],
        "operator": mutation.operator,
        "right": summarised(mutation.right, 200),
        "wrong": summarised(mutation.wrong, 200),
        **verdict,
        "seed": seed,
    }
    whole = not path.exists() or path.read_bytes().endswith(b"\n") or not path.stat().st_size
    with path.open("a", encoding="utf-8") as file:
        file.write(("" if whole else "\n") + json.dumps(line, ensure_ascii=False) + "\n")


def main() -> None:
    """Judge mutations until the time is over."""
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--room", default="", help="part of a path, such as spark_impl/join")
    parser.add_argument("--kind", default="", choices=("", *KINDS), help="what the code decides")
    parser.add_argument("--verdicts", type=Path, default=VERDICTS)
    parser.add_argument("--calls", type=Path, default=CALLS)
    parser.add_argument("--again", action="store_true", help="judge what no property has killed")
    parser.add_argument("--name", default="", help="judge the mutation of this name alone")
    parser.add_argument("--quick", action="store_true", help="ask no tests that start Spark")
    asked = parser.parse_args()
    until = time.monotonic() + 60 * asked.minutes
    record_calls(ROOT, asked.calls)
    equivalent = tomllib.loads(EQUIVALENT.read_text(encoding="utf-8"))
    with copied(ROOT) as copy:
        killers = [str(each["test"]) for each in read_verdicts(asked.verdicts).values()]
        judge = Judge(copy, Calls.read(asked.calls), kills=killers, on_spark=not asked.quick)
        for mutation in drawn(copy, asked.seed, asked.room):
            known = read_verdicts(asked.verdicts).get(mutation.name)
            if time.monotonic() > until:
                break
            if asked.name not in ("", mutation.name) or asked.kind not in ("", mutation.kind):
                continue
            if (known is None) == asked.again or mutation.name in equivalent:
                continue
            if known and is_killed_by_properties(known):
                continue
            verdict = judge.judge(mutation)
            seed = int(str(known["seed"])) if known else asked.seed
            write_verdict(asked.verdicts, mutation, verdict, seed)
            change = f"{summarised(mutation.right)} -> {summarised(mutation.wrong)}"
            said = f"{verdict['verdict']} by {verdict['test'] or verdict['by'] or 'nothing'}"
            print(f"{mutation.file}:{mutation.line} {change}: {said}", flush=True)  # noqa: T201 (to the person who waits)


if __name__ == "__main__":
    main()
