"""The file of the pairs that one worker finds."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from spark_impl.join.matching import Pairs
from spark_impl.join.store import MATCHES
from spark_impl.runtime.histories import RowFile
from spark_impl.runtime.tables import BATCH

COLUMNS = MATCHES.append(pa.field(BATCH, pa.int64()))


class MatchFile:
    """The pairs of one worker in one attempt, written as they are found."""

    def __init__(self, file: RowFile, queries: Sequence[str], epoch: int) -> None:
        self._file = file
        self._queries = tuple(queries)
        self._epoch = epoch
        self.counts = [0] * len(self._queries)
        """Number of pairs written so far, by query."""

    def write(self, found: Sequence[Sequence[Pairs]]) -> None:
        """Write the pairs of every query; each query with pairs gets a row group."""
        for number, (query, own) in enumerate(zip(self._queries, found, strict=True)):
            if not own:
                continue
            r_id = np.concatenate([pairs.r_id for pairs in own])
            s_id = np.concatenate([pairs.s_id for pairs in own])
            epoch = np.full(len(r_id), self._epoch)
            columns = [pa.repeat(query, len(r_id)), *map(pa.array, (r_id, s_id, epoch))]
            self._file.write(pa.table(columns, schema=COLUMNS))
            self.counts[number] += len(r_id)
