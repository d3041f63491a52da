"""Pairs of one worker in one attempt at an epoch, written as they are found.

A worker so never holds more than about :data:`ROWS_MAX` of them, whatever the epoch finds.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from spark_impl.join.matching import Pairs
from spark_impl.join.store import MATCHES

ROWS_MAX = 1 << 17
"""Pairs that are held before they are written, of all queries together."""


class MatchFile:
    """A file that appears under its name when it is closed, and not at all without a pair."""

    def __init__(self, path: Path, queries: Sequence[str], epoch: int) -> None:
        self._path = path
        self._scratch = path.with_name(f".{path.name}")
        self._queries = tuple(queries)
        self._epoch = epoch
        self._writer: pq.ParquetWriter | None = None
        self.counts = [0] * len(self._queries)
        """Pairs written so far, by query."""

    def write(self, found: Sequence[Sequence[Pairs]]) -> None:
        """Write pairs, those of every query; a row group for each query that has some."""
        for number, (query, own) in enumerate(zip(self._queries, found, strict=True)):
            if not own:
                continue
            r_id = np.concatenate([pairs.r_id for pairs in own])
            s_id = np.concatenate([pairs.s_id for pairs in own])
            epoch = np.full(len(r_id), self._epoch)
            columns = [pa.repeat(query, len(r_id)), *map(pa.array, (r_id, s_id, epoch))]
            if self._writer is None:
                self._writer = pq.ParquetWriter(self._scratch, MATCHES, compression="zstd")
            self._writer.write_table(pa.table(columns, schema=MATCHES))
            self.counts[number] += len(r_id)

    def close(self) -> None:
        """All pairs have been written: the file is complete."""
        if self._writer is not None:
            self._writer.close()
            self._scratch.replace(self._path)
