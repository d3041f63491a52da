"""A driver process of a soak: ``python -m tests.soak.driver MASTER``, with commands on its input.

A command is a line of JSON, ``{"do": "start", "room": "join", "folder": ..., "workers": 2}``; a
room runs as its users run it, with ``start(...)`` and a sink that replaces what it wrote before.

* ``start`` opens the queries of a room on a folder and starts them, ``stop`` stops them;
* ``settle`` waits until everything in the sources has been processed and committed, then writes
  what users read, ``results`` and the sink, into ``observed.json``;
* ``flush`` ends the stream, and then writes the same.

Each is answered by a line: its name, or ``failed`` with a sentence. Queries announce micro-batches
in between, and wait at the gate of the folder (:mod:`tests.harness.announcements`).
"""

import json
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from spark_impl.runtime.failures import sentence_of
from spark_impl.runtime.session import session
from spark_impl.runtime.storage import InputProblem
from tests.harness.announcements import place_gate, say
from tests.soak.rooms import Opened, open_room

INTERVAL = "50 milliseconds"


class Desk:
    """Carries out commands on the queries of one room at a time."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._folder = Path()
        self._opened: Opened | None = None
        self._running: list[StreamingQuery] = []

    def carry_out(self, given: dict[str, Any]) -> str:
        """Carry out a command; return the line that answers it."""
        does = {"start": self._start, "settle": self._settle, "flush": self._flush}
        try:
            if given["do"] == "stop":
                self._stop()
            else:
                does[given["do"]](given)
        except Exception as error:
            self._stop()
            is_ours = isinstance(error, InputProblem | RuntimeError | ValueError | OSError)
            said = str(error) if is_ours else sentence_of(error)
            return f"failed {type(error).__name__}: " + " ".join(said.split())
        return str(given["do"])

    def _start(self, given: dict[str, Any]) -> None:
        self._open(given)
        assert self._opened is not None
        for start in self._opened.start:
            self._running.append(start(INTERVAL))

    def _open(self, given: dict[str, Any]) -> None:
        self._folder = Path(given["folder"])
        place_gate(self._folder / "gate")
        self._opened = open_room(self._spark, given)

    def _settle(self, given: dict[str, Any]) -> None:
        for query in self._running:
            query.processAllAvailable()
        self._observe()

    def _flush(self, given: dict[str, Any]) -> None:
        self._stop()
        self._open(given)
        assert self._opened is not None
        self._opened.flush()
        self._observe()

    def _observe(self) -> None:
        assert self._opened is not None
        scratch = self._folder / "observed.scratch"
        scratch.write_text(json.dumps(self._opened.observe()), encoding="utf-8")
        scratch.replace(self._folder / "observed.json")

    def _stop(self) -> None:
        for query in self._running:
            with suppress(Exception):  # it has failed, or Java is gone
                query.stop()
        self._running = []


def main(master: str) -> None:
    """Carry out the commands on standard input until it ends."""
    with session(master) as spark:
        desk = Desk(spark)
        say(f"ready {spark.sparkContext.applicationId}")
        for line in sys.stdin:
            say(desk.carry_out(json.loads(line)))


if __name__ == "__main__":
    main(sys.argv[1])
