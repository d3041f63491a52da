"""Write the archive from which Java takes Spark's classes: ``python -m spark_impl.class_archive``.

When a small query has ended, Java stores the classes that it has loaded. The archive belongs to one
Java and one Spark, and lies in the virtual environment of that Spark.
"""

import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from pyspark import SparkContext
from pyspark.sql import SparkSession

from spark_impl.over import over
from spark_impl.runtime.session import CLASS_ARCHIVE, session

ROWS = "a,2026-03-01 08:00:09,1\na,2026-03-01 08:00:40,2\na,2026-03-01 08:00:00,3\n"


def write() -> None:
    """Write the archive anew; nobody sees it before it is complete."""
    CLASS_ARCHIVE.unlink(missing_ok=True)  # Java does not write one while it uses another
    half = CLASS_ARCHIVE.with_suffix(f".{os.getpid()}")
    options = f"-XX:ArchiveClassesAtExit={half} -Xlog:disable"
    os.environ["SPARK_SUBMIT_OPTS"] = f"{os.environ.get('SPARK_SUBMIT_OPTS', '')} {options}"
    with TemporaryDirectory(prefix="straggler-classes-") as folder, session() as spark:
        sys.stderr.write("  a small query loads them ...\n")
        _load_classes(spark, Path(folder))
        spark.stop()
        sys.stderr.write("  Java writes them ...\n")
        _end_java()
    half.replace(CLASS_ARCHIVE)


def _load_classes(spark: SparkSession, folder: Path) -> None:
    """Land a stream and answer a query on it."""
    incoming = folder / "incoming"
    incoming.mkdir()
    (incoming / "rows.csv").write_text(ROWS, encoding="utf-8")
    rows = spark.readStream.schema("device string, at string, watts string").csv(str(incoming))
    windows = over(rows, event_time="at", key="device").window("10 seconds", "2 seconds")
    query = windows.sum("watts").store_in(str(folder / "power"))
    query.flush()
    query.results().collect()


def _end_java() -> None:
    """End Java, which takes a while, because it writes the archive then."""
    gateway = SparkContext._gateway
    assert gateway is not None
    gateway.proc.stdin.close()  # Spark's gateway ends with its input
    gateway.proc.wait()


if __name__ == "__main__":
    write()
