"""A driver process of sensor scripts that tests kill: ``python -m tests.harness.script_driver``.

It takes the same folder as :mod:`tests.harness.windows_driver` and prints the same lines.
"""

import json
import sys
from pathlib import Path

from pyspark.sql import DataFrame

from model.vocabulary import ScriptConfig, Workload
from spark_impl.runtime.session import session
from spark_impl.runtime.systems import CASE
from spark_impl.runtime.tables import TableWriter
from spark_impl.script import ScriptQuery
from tests.harness.announcements import announced, say


class AnnouncedScripts(ScriptQuery):
    """The script query, with a line before and after each micro-batch."""

    def _finish(self, answers: DataFrame, batch: int, writer: TableWriter) -> None:
        with announced(batch):
            super()._finish(answers, batch, writer)


def main(folder: Path) -> None:
    """Resume the query in ``folder`` and run it to its end."""
    data = json.loads((folder / "workload.json").read_text(encoding="utf-8"))
    config = ScriptConfig.from_json(Workload.from_json(data).config)
    with session() as spark:
        query = AnnouncedScripts(spark, config, folder / "history", folder / "store", [CASE])
        say("started")
        query.flush()
        say("done")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
