"""Errors of users, and the words of their messages."""

import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager

from model.vocabulary.settings import nearest
from model.vocabulary.texts import escaped

LONGEST_WORD = 400
"""Characters of a word, such as a value in a file of a user, that are shown in any case."""


class UsageError(Exception):
    """An error of the user: one sentence that names the offending value; exit code 2."""


class SystemFailedError(Exception):
    """A failure of a system on trial: a sentence whose subject, the system, is left out."""


@contextmanager
def store_refused() -> Iterator[None]:
    """Turn an error of a store, or of a request to it, into one of the user."""
    # Imported here because pyarrow takes a second that a refusal does not need.
    from spark_impl.runtime.storage import InputProblem

    try:
        yield
    except InputProblem as problem:
        raise UsageError(str(problem)) from problem


def refuse_unknown(what: str, name: str, known: Collection[str]) -> None:
    """Raise :class:`UsageError` with a suggestion if a name is none of those that are known."""
    if name not in known:
        listing = f"{', '.join(known)}{nearest(name, known)}"
        raise UsageError(f"there is no {what} {name!r}, only {listing}")


def format_error(sentence: str) -> str:
    """Return the line that tells a user of an error; the middle of an endless word is left out."""
    sentence = escaped(" ".join(sentence.split()))
    sentence = re.sub(
        rf"\S{{{LONGEST_WORD},}}", lambda word: f"{word[0][:60]}...{word[0][-60:]}", sentence
    )
    return f"straggler: {sentence}{'' if sentence.endswith(('?', '.')) else '.'}\n"


def counted(n: int, noun: str) -> str:
    """Return a number with its noun: ``1 batch``, ``2 batches``, ``1,000 arrivals``."""
    plural = f"{noun}es" if noun.endswith("ch") else f"{noun}s"
    return f"{n:,} {noun if n == 1 else plural}"
