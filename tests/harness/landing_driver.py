"""A driver process of a landing that tests kill.

``python -m tests.harness.landing_driver FOLDER`` lands the files of ``FOLDER/in`` in
``FOLDER/history``, each as a micro-batch, and prints its progress for
:mod:`tests.harness.driver_kills`.
"""

import json
import os
import sys
from pathlib import Path

from pyspark.sql import DataFrame

from spark_impl.runtime.landing import Landing
from spark_impl.runtime.session import session
from tests.harness.announcements import announced, say

FILES = 9
ROWS = 60
"""Number of rows of a file; the first row of every file cannot be read."""


class AnnouncedLanding(Landing):
    """The landing, with a line before and after each micro-batch."""

    def _land(self, rows: DataFrame, batch: int) -> None:
        with announced(batch):
            super()._land(rows, batch)


def prepare(folder: Path) -> None:
    """Write the files to land."""
    (folder / "in").mkdir()
    for number in range(FILES):
        path = folder / "in" / f"{number}.json"
        rows = [{"ts": number * ROWS + at, "v": at} for at in range(ROWS)]
        rows[0] = {"ts": 1 << 60, "v": number}  # beyond all calendars
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        os.utime(path, (1_000 + number, 1_000 + number))


def main(folder: Path) -> None:
    """Resume the landing, and run it until all files are landed."""
    with session() as spark:
        source = spark.readStream.schema("ts long, v double").option("maxFilesPerTrigger", 1)
        landing = AnnouncedLanding(
            source.json(str(folder / "in")),
            folder / "history",
            folder / "checkpoint",
            event_time="ts",
            value="v",
            time_unit="us",
        )
        say("started")
        landing.run_available()
    say("done")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
