"""Judges drawn mutations of our packages: ``make mutants NUMBER=20 SEED=1``.

A copy of the repository is mutated on disk, and pytest runs in that copy, because Spark's Python
processes import modules of their own. The first failure ends a mutation. Properties of its room
are asked first, and those of no room, then the promises on Spark, then the tests of the room.
``docs/evidence.md`` says what was found, and which mutations change nothing that anybody can see.
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
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from importlib.util import cache_from_source
from itertools import islice
from pathlib import Path

from straggler.rooms import room_names
from tests.quality.mutations import KINDS, Mutation, draw_mutations, summarised

ROOT = Path(__file__).resolve().parents[2]
VERDICTS = ROOT / "build" / "mutants.jsonl"
LIMIT_S = 900
"""Longest time (s) of a stage; a mutation with which tests do not end is killed."""
UNNAMED = ("tests that do not end", "tests that do not begin")
"""Failures that name no test."""
LEFT_OUT = (".git", ".venv", ".engines", ".hypothesis", "__pycache__", ".*_cache", "build")
LAST = ("test_operators", "test_promises")
"""Files of properties that take longest."""
_SHARED = {"windows": ("slack", "watermark")}
"""Rooms of a folder that is no room."""


def stages(root: Path, mutation: Mutation) -> Mapping[str, Sequence[str]]:
    """Return the test files that judge a mutation, by stage, the cheapest first."""
    package, *_ = mutation.file.split("/")
    words = mutation.file.removesuffix(".py").split("/")
    part = words[2] if words[1] == "vocabulary" and len(words) > 2 else words[1]
    rooms = _SHARED.get(part, (part,))
    found = sorted((root / "properties").glob("test_*.py"))
    of_rooms = {path.stem for path in found} & {f"test_{room}" for room in room_names()}
    own = {f"test_{room}" for room in rooms} & of_rooms or of_rooms  # or all rooms share the file
    asked = [path for path in found if path.stem in own or path.stem not in (*of_rooms, *LAST)]
    others = [path.relative_to(root) for path in sorted((root / "tests").rglob("test_*.py"))]
    of_room = [
        path.as_posix()
        for path in others
        if path.name == "test_planted_bugs.py"  # it imports rooms by name
        or any(room in path.as_posix() for room in (*rooms, part))
        or any(
            f"{package}.{room}" in (root / path).read_text(encoding="utf-8")
            for room in (*rooms, part)
        )
    ]
    return {
        "properties": [
            *(path.relative_to(root).as_posix() for path in asked),
            *(f"properties/{name}.py" for name in LAST[:-1]),
        ],
        "promises": ["properties/test_promises.py"],
        "tests": [path for path in of_room if not path.startswith("tests/quality/test_promises")],
    }


def judge(copy: Path, mutation: Mutation, is_sound: dict[str, bool]) -> tuple[str, str]:
    """Return the stage that kills a mutation in a copy, and the test; nothing if it survives.

    ``is_sound`` remembers which of the tests that failed pass without a mutation; the others are
    not asked again.
    """
    path = copy / mutation.file
    right = path.read_bytes()
    for stage, tests in stages(copy, mutation).items():
        while True:
            unsound = [name for name, passes in is_sound.items() if not passes]
            write(path, mutation.apply(right))
            failed = first_failure(copy, tests, unsound)
            write(path, right)
            if not failed:
                break
            if failed not in UNNAMED and failed not in is_sound:
                is_sound[failed] = not first_failure(copy, [failed], [])
            if is_sound.get(failed, True):
                return stage, failed
    return "", ""


def write(path: Path, source: bytes) -> None:
    """Write a module; Python would take a compiled one of the same second and size for it."""
    path.write_bytes(source)
    Path(cache_from_source(str(path))).unlink(missing_ok=True)


def first_failure(folder: Path, tests: Sequence[str], without: Collection[str]) -> str:
    """Run tests in a folder with the packages there; return the first one that fails."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "--tb=no", "-p", "no:xdist"]
    command += [f"--deselect={each}" for each in without]
    environment = {**os.environ, "PYTHONPATH": str(folder), "COLUMNS": "1000"}
    with subprocess.Popen(
        [*command, "--hypothesis-profile=ci", *tests],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            said, _ = process.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            return UNNAMED[0]
        finally:
            with suppress(ProcessLookupError):  # what it started may have survived it
                os.killpg(process.pid, signal.SIGKILL)
    found = re.search(r"^(?:FAILED|ERROR) (\S+?\.py\S*(?:\[.*?\])?)(?: - |$)", said, re.MULTILINE)
    if process.returncode in (0, 5):
        return ""
    return found[1] if found else UNNAMED[1]


def main() -> None:
    """Judge as many mutations as are asked for; print each verdict, and append it to a file."""
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    parser.add_argument("--number", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--room", default="", help="part of a path, such as spark_impl/join")
    parser.add_argument("--kind", default="", choices=("", *KINDS), help="what the code decides")
    parser.add_argument("--verdicts", type=Path, default=VERDICTS)
    asked = parser.parse_args()
    asked.verdicts.parent.mkdir(parents=True, exist_ok=True)
    is_sound: dict[str, bool] = {}
    with tempfile.TemporaryDirectory(prefix="straggler-mutants-") as folder:
        copy = Path(folder, "copy")
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(*LEFT_OUT))
        mutations = draw_mutations(copy, asked.seed, asked.room)
        chosen = (each for each in mutations if asked.kind in ("", each.kind))
        for each in islice(chosen, asked.number):
            stage, test = judge(copy, each, is_sound)
            verdict = {**each._asdict(), "name": each.name, "stage": stage, "test": test}
            with asked.verdicts.open("a", encoding="utf-8") as file:
                file.write(json.dumps(verdict, ensure_ascii=False) + "\n")
            change = f"{summarised(each.right)} -> {summarised(each.wrong)}"
            said = f"killed by {stage}: {test}" if stage else "survived"
            print(f"{each.file}:{each.line} {change}: {said}", flush=True)  # noqa: T201 (to the person who waits)


if __name__ == "__main__":
    main()
