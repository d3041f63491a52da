"""Merges the files of epochs, so that their number grows slowly.

Rules of this file:

* A hundred epochs are merged before another one runs, while the lock of the store is held. At least
  one epoch is behind them: the last one stays alone.
* Rows come first, commits last. Whatever a crash leaves before that counts for nobody and is
  written again, with the same content.
* What was merged stays until the next hundred is merged, for readers that have just listed it.
"""

from contextlib import suppress
from itertools import chain

from spark_impl.join.store import ONE_FOLDER, STEPS, TABLES, ChainStore, Part
from spark_impl.runtime import folder_stores as stores
from spark_impl.runtime.folder_stores import read_parquet
from spark_impl.runtime.histories import write_parquet
from spark_impl.runtime.storage import InputProblem

_ROWS_MERGED = 4_000_000
"""Most rows that are merged, in memory; of epochs with more, only the commits are merged."""
_ROW_GROUP = 100_000


def merge_epochs(store: ChainStore) -> None:
    """Merge the files of a full hundred of epochs, if there is one that was not merged yet.

    Then remove the files of the hundreds that were merged before. Raise :class:`InputProblem` if
    rows are missing that workers have written.
    """
    merged, alone = store.listed()
    if len(alone) > stores.MERGED:
        _merge(store, alone[: stores.MERGED])
        _remove(store, merged)


def _merge(store: ChainStore, span: range) -> None:
    commits = [store.commit_of(epoch) for epoch in span]
    own = [Part(commits, holds_rows=False)]
    written = {table: store.rows_written(table, commits) for table in TABLES}
    holds_rows = sum(written.values()) <= _ROWS_MERGED
    for table, rows in written.items() if holds_rows else ():
        found = read_parquet(store.files(table, own), TABLES[table])
        if found.num_rows != rows:
            msg = (
                f"{store.root} has {found.num_rows} of the {rows} rows that were written to"
                f" {table!r} in epochs {span.start} to {span.stop - 1}: {ONE_FOLDER}"
            )
            raise InputProblem(msg)
        if rows:
            write_parquet(found, store.merged_file(table, span), _ROW_GROUP)
    steps = store.files(STEPS, own) if holds_rows else []
    if steps:
        with store.merged_file(STEPS, span).stream() as out:
            for file in steps:
                out.write(file.read_bytes())
    store.write_part(Part(commits, holds_rows))


def _remove(store: ChainStore, merged: list[range]) -> None:
    """Remove the files of epochs whose merged files have been there for a hundred epochs."""
    epochs = {int(each.name): each for each in (store.root / "epochs").children(r"\d+")}
    with suppress(InputProblem, OSError):  # a worker of an older attempt may still be writing
        for span in merged:
            here = [epochs[epoch] for epoch in span if epoch in epochs]
            if here and store.load_part(span).holds_rows:
                for folder in here:
                    folder.remove()
        for epoch in sorted({*store.numbers("commits")} & {*chain.from_iterable(merged)}):
            store.commit_file(epoch).remove()
