"""Sources in the memory of Java: all inputs of a query in one, so that they are cut alike."""

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from straggler.errors import UsageError
from straggler.jobs.rows import INPUT_COLUMN, Frames, Row

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Memory:
    """Maker of sources."""

    def __init__(self, spark: "SparkSession", frames: Frames) -> None:
        if not hasattr(spark, "_jsparkSession"):
            raise UsageError("the session is one of Spark Connect; a classic session is needed")
        self.spark, self.frames = spark, frames
        self.is_single = len(frames.inputs) == 1
        schema = frames.inputs[0].schema if self.is_single else frames.packed
        jvm: Any = spark._jvm
        self.jvm = jvm
        runtime = jvm.org.apache.spark.sql.execution.streaming.runtime
        java = spark._jsparkSession.parseDataType(schema.json())
        self._encoder = jvm.org.apache.spark.sql.Encoders.row(java)
        self._make = runtime.MemoryStream
        self._lock = threading.Lock()

    def open(self) -> "Source":
        """Return a new source."""
        with self._lock:
            return Source(self, self._make.apply(self.spark._jsparkSession, self._encoder))


class Source:
    """The inputs of one query."""

    def __init__(self, of: Memory, stream: Any) -> None:
        self._of, self._stream = of, stream

    def frames(self) -> list["DataFrame"]:
        """Return the inputs as streaming frames."""
        from pyspark.sql import DataFrame

        whole = DataFrame(self._stream.toDF(), self._of.spark)
        if self._of.is_single:
            return [whole]
        inputs = self._of.frames.inputs
        return [whole.where(whole[INPUT_COLUMN] == n).select(f"r{n}.*") for n in range(len(inputs))]

    def chunks(self, batches: Sequence[Sequence[Row]]) -> Callable[[int], None]:
        """Return a function that adds a micro-batch, whose rows Java has from now on."""
        java = self._of.frames.all([row for batch in batches for row in batch])._jdf.collectAsList()
        ends = [sum(map(len, batches[: n + 1])) for n in range(len(batches))]
        convert = self._of.jvm.scala.jdk.javaapi.CollectionConverters

        def add(number: int) -> None:
            chosen = java.subList(ends[number] - len(batches[number]), ends[number])
            self._stream.addData(convert.asScala(chosen).toSeq())

        return add
