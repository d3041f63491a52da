"""``make soak``: rooms on real Spark, fault after fault, checked after every recovery.

The records of all faults are in ``FOLDER/faults.jsonl``; another run with the same folder goes on
with the next fault, and a new life of a room. Exit codes: 0 if nothing was lost and nothing came
twice, 1 if a check failed, 2 for bad arguments, 130 if interrupted.
"""

import argparse
import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

from benchmarks.__main__ import MEASURED
from spark_impl.runtime.session import EnvironmentProblem, require_java
from tests.soak.driver import DriverProcess
from tests.soak.faults import Plan, draw_plan
from tests.soak.life import Drivers, Life, NotRecovered, Outcome
from tests.soak.oracles import ORACLES
from tests.soak.table import read_records, summarise

LOCAL, CLUSTER = "local[4,4]", "local-cluster[2,2,1024]"
CLUSTERS = 0.3
"""Share of drivers whose executors are processes of their own."""
LIFE = (8, 40)
"""Fewest and most faults of a life."""
BROKEN, USAGE_ERROR, INTERRUPTED = 1, 2, 130


class Soak:
    """Fault after fault, until the time is over."""

    def __init__(self, folder: Path, seed: int, rooms: Sequence[str]) -> None:
        self._folder = folder
        self._seed = seed
        self._rooms = rooms
        self._records = folder / "faults.jsonl"
        self.done = len(read_records(self._records))
        """Number of faults so far, which is the number of the next one."""
        self._begun = 0
        self._life: Life | None = None
        self._left = 0
        self._failed = False

    def run(self, until_s: float, at_most: int | None) -> bool:
        """Run until then, or until so many faults; return whether nothing was found."""
        last = None if at_most is None else self.done + at_most - 1
        drivers = Drivers(self._begin_driver)
        try:
            while True:
                is_over = time.monotonic() >= until_s or (last is not None and self.done >= last)
                if not self._do_next(drivers, is_last=is_over):
                    return False
                if is_over:
                    return True
        finally:
            drivers.end()
            if self._life is not None:
                self._life.remove(keeps=self._failed)

    def _begin_driver(self) -> DriverProcess:
        draw = Random(f"{self._seed}/{self.done}/driver/{self._begun}")
        self._begun += 1
        master = CLUSTER if draw.random() < CLUSTERS else LOCAL
        return DriverProcess(master, self._folder / "scratch")

    def _do_next(self, drivers: Drivers, *, is_last: bool) -> bool:
        """Do one fault; return whether the room recovered with nothing lost and nothing twice."""
        draw = Random(f"{self._seed}/{self.done}")
        if self._life is None:
            room = draw.choice(self._rooms)
            self._life = Life(room, self._folder / f"life-{self.done}", drivers, draw)
            self._left = draw.randint(*LIFE)
        life, self._left = self._life, self._left - 1
        plan = draw_plan(
            self.done,
            life.room,
            draw,
            has_executors=life.has_executors,
            is_last=is_last or self._left <= 0,
        )
        begun_s = time.monotonic()
        failed = ""
        outcome = Outcome(plan.moment, "?", 0, 0, [], 0, 0, 0, [])
        try:
            outcome = life.undergo(plan)
        except NotRecovered as error:
            failed = f"not recovered: {error}"
        if outcome.findings:
            failed = "; ".join(f"{each.kind}: {each.what}" for each in outcome.findings[:3])
        seconds = round(time.monotonic() - begun_s, 2)
        self._note(plan, outcome, failed, seconds, is_cluster=life.has_executors)
        if failed:
            self._failed = True
            life.keep()
            say(f"broken: seed {self._seed}, fault {plan.number}, kept in {life.folder}: {failed}")
            return False
        if life.ended:
            life.stop()
            life.remove()
            self._life = None
        return True

    def _note(
        self, plan: Plan, outcome: Outcome, failed: str, seconds: float, *, is_cluster: bool
    ) -> None:
        record: dict[str, Any] = {
            "seed": self._seed,
            "fault": plan.number,
            "room": plan.room,
            "kind": plan.kind,
            "planned": plan.moment,
            **outcome._asdict(),
            "findings": [list(each) for each in outcome.findings],
            "failed": failed,
            "seconds": seconds,
            "cluster": is_cluster,
        }
        with self._records.open("a", encoding="utf-8") as out:
            out.write(json.dumps(record) + "\n")
        self.done += 1
        result = failed or f"{outcome.checked} answers right"
        struck = f" ({outcome.struck})" if outcome.struck else " (nothing to strike)"
        say(
            f"{plan.number:5d}  {seconds:5.1f} s  {plan.room}: {plan.kind}{struck}"
            f" {outcome.moment}; {outcome.starts} starts; {result}"
        )


def remove_forsaken(folder: Path) -> None:
    """Remove the lives of a soak that was killed; those that failed stay."""
    for life in folder.glob("life-*"):
        if (life / "disk").is_mount():
            subprocess.run(["umount", "-l", str(life / "disk")], check=False, capture_output=True)
        if not (life / "kept").exists():
            shutil.rmtree(life, ignore_errors=True)


def say(line: str) -> None:
    """Print a line."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a soak; return the exit code."""
    given = parse(arguments)
    folder: Path = given.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    remove_forsaken(folder)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    soak = Soak(folder, given.seed, given.rooms)
    say(f"seed {given.seed}, from fault {soak.done} on, records in {folder / 'faults.jsonl'}")
    try:
        require_java()
        holds = soak.run(time.monotonic() + 60 * given.minutes, given.faults)
    except EnvironmentProblem as problem:
        sys.stderr.write(f"soak: {problem}.\n")
        return USAGE_ERROR
    except KeyboardInterrupt:
        say("interrupted")
        return INTERRUPTED
    finally:
        shutil.rmtree(folder / "scratch", ignore_errors=True)
    summary = summarise(read_records(folder / "faults.jsonl"))
    MEASURED.mkdir(exist_ok=True)
    text = json.dumps(summary, indent=2) + "\n"
    (MEASURED / "soak.json").write_text(text, encoding="utf-8")
    say(
        f"{summary['faults']} faults, {summary['recovered']} recovered, {summary['lost']} lost,"
        f" {summary['twice']} twice, {summary['wrong']} wrong"
    )
    return 0 if holds else BROKEN


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="make soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--faults", type=int, help="stop after so many faults")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--room", default="", help=f"one of {', '.join(ORACLES)}; all by default")
    parser.add_argument("--folder", type=Path, default=Path(".soak"))
    given = parser.parse_args(arguments)
    given.rooms = [each for each in ORACLES if given.room in ("", each, each.partition("-")[0])]
    if not given.rooms:
        parser.error(f"--room is {given.room!r}; it can be {', '.join(ORACLES)}")
    return given


if __name__ == "__main__":
    sys.exit(main())
