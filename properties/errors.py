"""What a user did that cannot be done, and how to say it."""

import difflib
from collections.abc import Iterable


class UsageError(Exception):
    """The message is one sentence for the user that names the offending value; exit code 2."""


def nearest(word: str, known: Iterable[str]) -> str:
    """``"; did you mean 'x'?"`` for the known word closest to ``word``, or nothing."""
    found = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"; did you mean {found[0]!r}?" if found else ""


def counted(n: int, noun: str) -> str:
    """``1 batch``, ``2 batches``, ``1,000 arrivals``."""
    plural = f"{noun}es" if noun.endswith("ch") else f"{noun}s"
    return f"{n:,} {noun if n == 1 else plural}"
