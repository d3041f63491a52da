"""Sources in the memory of Java: all inputs of a query in one, so that they are cut alike."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from straggler.jobs.rows import INPUT_COLUMN, Frames, Row

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Source:
    """The inputs of one query."""

    def __init__(self, frames: Frames) -> None:
        """Make a source without rows."""
        self._frames = frames
        spark = frames.spark
        jvm: Any = spark._jvm
        self._jvm = jvm
        java = spark._jsparkSession.parseDataType(frames.packed.json())
        encoder = jvm.org.apache.spark.sql.Encoders.row(java)
        streams = jvm.org.apache.spark.sql.execution.streaming.runtime.MemoryStream
        self._stream = streams.apply(spark._jsparkSession, encoder)

    def frames(self) -> list["DataFrame"]:
        """Return the inputs as streaming frames."""
        from pyspark.sql import DataFrame

        whole = DataFrame(self._stream.toDF(), self._frames.spark)
        if self._frames.is_single:
            return [whole]
        numbers = range(len(self._frames.inputs))
        return [whole.where(whole[INPUT_COLUMN] == n).select(f"r{n}.*") for n in numbers]

    def chunks(self, batches: Sequence[Sequence[Row]]) -> Callable[[int], None]:
        """Return a function that adds a micro-batch, whose rows Java has from now on."""
        java = self._frames.all([row for batch in batches for row in batch])._jdf.collectAsList()
        ends = [sum(map(len, batches[: n + 1])) for n in range(len(batches))]
        convert = self._jvm.scala.jdk.javaapi.CollectionConverters

        def add(number: int) -> None:
            chosen = java.subList(ends[number] - len(batches[number]), ends[number])
            self._stream.addData(convert.asScala(chosen).toSeq())

        return add
