"""The file of the pairs that one worker finds."""

from collections.abc import Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from spark_impl.join.matching import Pairs
from spark_impl.join.store import MATCHES
from spark_impl.runtime.histories import FORMAT
from spark_impl.runtime.storage import Location, writing
from spark_impl.runtime.tables import BATCH

_COLUMNS = MATCHES.append(pa.field(BATCH, pa.int64()))


class MatchFile:
    """The pairs of one worker in one attempt, written as they are found.

    The file appears under its name at the end of a ``with`` block, and not at all without a pair.
    """

    def __init__(self, file: Location, queries: Sequence[str], epoch: int) -> None:
        self._file = file
        self._queries = tuple(queries)
        self._epoch = epoch
        self._open = ExitStack()
        self._writer: pq.ParquetWriter | None = None
        self.counts = [0] * len(self._queries)
        """Number of pairs written so far, by query."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with writing(self._file.parent):
            self._open.__exit__(kind, error, trace)

    def write(self, found: Sequence[Sequence[Pairs]]) -> None:
        """Write the pairs of every query; each query with pairs gets a row group."""
        for number, (query, own) in enumerate(zip(self._queries, found, strict=True)):
            if not own:
                continue
            r_id = np.concatenate([pairs.r_id for pairs in own])
            s_id = np.concatenate([pairs.s_id for pairs in own])
            epoch = np.full(len(r_id), self._epoch)
            columns = [pa.repeat(query, len(r_id)), *map(pa.array, (r_id, s_id, epoch))]
            with writing(self._file.parent):
                self._begun().write_table(pa.table(columns, schema=_COLUMNS))
            self.counts[number] += len(r_id)

    def _begun(self) -> pq.ParquetWriter:
        """Return the writer; the first pair makes it."""
        if self._writer is None:
            out = self._open.enter_context(self._file.stream())
            self._writer = self._open.enter_context(pq.ParquetWriter(out, _COLUMNS, **FORMAT))
        return self._writer
