"""Arrivals worked out by hand."""

from model.vocabulary import Event

START_US = 1_000


def stream_of(
    *rows: tuple[int, float] | tuple[int, float, str], first: int = 0
) -> tuple[Event, ...]:
    """Return arrivals one tick apart from rows (event time, value) or (event time, value, key).

    Identities are counted from ``first``.
    """
    return tuple(
        Event(seq, seq, row[2] if len(row) > 2 else "a", row[0], row[1], START_US + seq)
        for seq, row in enumerate(rows, start=first)
    )
