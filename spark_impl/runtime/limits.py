"""Limits of refused, late and shed rows, at which a query stops instead of committing.

The rows for which a micro-batch was not committed are in ``_stopped/<batch>.parquet`` until it is
committed. That the next run plans the same micro-batch, and stops or goes on, is what it does after
a crash.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeAlias

import pyarrow as pa

from model.vocabulary.settings import is_int
from spark_impl.runtime import accounts
from spark_impl.runtime.histories import write_parquet
from spark_impl.runtime.storage import InputProblem, Location
from spark_impl.runtime.stores import Draft
from spark_impl.runtime.tables import TableWriter

Limit: TypeAlias = float | None
"""A share of each micro-batch, a whole number of all rows so far, or None for any number.

A share lies below 1.0, so that 1 and 1.0 are never taken for each other.
"""
_STOPPED = "_stopped"


class Limits:
    """The limits of a query, by place: ``Limits(refused=0.01, late=1_000)``.

    Raise :class:`InputProblem` unless each is a share from 0.0 to less than 1.0, a whole number of
    at least 0, or None.
    """

    def __init__(self, **limits: object) -> None:
        self._limits = dict[str, float]()
        for place, each in limits.items():
            if (isinstance(each, float) and 0 <= each < 1) or (is_int(each) and each >= 0):
                self._limits[place] = each
            elif each is not None:
                msg = (
                    f"max_{place} is {each!r}; it must be a share of each micro-batch below 1.0,"
                    " such as 0.01, or a whole number of rows of all micro-batches, such as 100"
                )
                raise InputProblem(msg)
        self._seen: tuple[TableWriter | None, int, Counter[str]] = None, 0, Counter()
        self._lists = list[Location]()
        """Lists of rows that this run has found."""

    def write_account(
        self, draft: Draft, reading: accounts.Reading, places: Mapping[str, int]
    ) -> None:
        """Write the account of a micro-batch.

        Raise :class:`InputProblem`, and list the rows, if the micro-batch has more than a limit.
        """
        shared = min(places.get(accounts.UNASKED, 0), 0)  # each stream has read those rows
        for place in self._limits if draft.is_new else ():
            self.require(
                place,
                places.get(place, 0),
                reading.rows - shared,
                draft.batch,
                draft.store.root,
                earlier=partial(self._before, draft, place),
                listed=partial(_listed, draft, place),
            )
        self.settle(draft.batch)
        accounts.write_account(draft, reading, places)

    def require(
        self,
        place: str,
        rows: int,
        read: int,
        batch: int,
        root: Location,
        *,
        earlier: Callable[[], int],
        listed: Callable[[], pa.Table],
    ) -> None:
        """Raise :class:`InputProblem`, and list the rows, if a micro-batch has more than a limit.

        Of the ``read`` rows of the micro-batch, ``rows`` are in a place. ``earlier`` returns the
        number of rows of earlier micro-batches in this place, ``listed`` those of this one.
        """
        limit = self._limits.get(place)
        if limit is None or not rows:
            return
        if isinstance(limit, float):
            if rows / max(read, rows) <= limit:
                return
            found = f"{rows} of its {read} rows are {place}"
        else:
            total = earlier() + rows
            if total <= limit:
                return
            found = f"{rows} of its {read} rows are {place}, {total} in all"
        file = root / _STOPPED / f"{batch:08d}.parquet"
        write_parquet(listed(), file)
        msg = (
            f"{root} has not committed micro-batch {batch}: {found}, and max_{place} is {limit};"
            f" {file} lists them"
        )
        raise InputProblem(msg)

    def resume(self, root: Location) -> None:
        """Look for the rows at which the last run of a query stopped, if at a limit."""
        self._lists = (root / _STOPPED).children(r"\d+\.parquet")

    def settle(self, batch: int) -> None:
        """Remove lists of rows up to a micro-batch, which is committed next.

        Then the lists of the query have these rows.
        """
        for file in [each for each in self._lists if int(each.stem) <= batch]:
            file.remove()
            self._lists.remove(file)

    def _before(self, draft: Draft, place: str) -> int:
        """Return the number of rows in a place before a micro-batch."""
        writer, first, counts = self._seen
        if writer is not draft.writer:  # another run, maybe over another store in this folder
            first, counts = 0, Counter()
        counts = counts + accounts.rows_since(draft.view, first)
        self._seen = draft.writer, draft.view.last + 1, counts
        return counts[place]


def _listed(draft: Draft, place: str) -> pa.Table:
    """Return the rows of a micro-batch in a place, as far as tasks have listed them."""
    if place == accounts.LATE and accounts.LATE in draft.store.kinds:
        return draft.store.read(draft.of(accounts.LATE), accounts.LATE)
    return accounts.listed_as(place, draft.store.read(draft.of("rejected"), "rejected"))
