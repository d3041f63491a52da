"""The driver process of a query of scripts, to be killed: ``python -m properties.script.driver``.

Takes a folder as :mod:`properties.windows.driver` does, and says the same.
"""

import json
import sys
from pathlib import Path

from pyspark.sql import DataFrame

from model.vocabulary import ScriptConfig, Workload
from spark_impl.runtime.session import session
from spark_impl.script import ScriptQuery
from spark_impl.windows.packs import CASE
from tests.harness.announcements import announced, say


class AnnouncedScripts(ScriptQuery):
    """The query as it is, with a line before and after each micro-batch."""

    def _finish(self, answers: DataFrame, batch: int) -> None:
        with announced(batch):
            super()._finish(answers, batch)


def main(folder: Path) -> None:
    """Go on with the query in ``folder`` from wherever it stopped, until it is over."""
    data = json.loads((folder / "workload.json").read_text(encoding="utf-8"))
    config = ScriptConfig.from_json(Workload.from_json(data).config)
    with session() as spark:
        query = AnnouncedScripts(spark, config, folder / "history", folder / "store", [CASE])
        say("started")
        query.flush()
        say("done")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
