"""What a user did that cannot be done."""

import difflib
from collections.abc import Iterable


class UsageError(Exception):
    """The message is one sentence for the user that names the offending value; exit code 2."""


def nearest(word: str, known: Iterable[str]) -> str:
    """``"; did you mean 'x'?"`` for the known word closest to ``word``, or nothing."""
    found = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"; did you mean {found[0]!r}?" if found else ""
