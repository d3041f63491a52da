"""Errors of users, and the words of their messages."""


class UsageError(Exception):
    """An error of the user: one sentence that names the offending value; exit code 2."""


class SystemFailedError(Exception):
    """A failure of a system on trial: a sentence whose subject, the system, is left out."""


def format_error(sentence: str) -> str:
    """Return the line that tells a user of an error."""
    sentence = " ".join(sentence.split())
    return f"straggler: {sentence}{'' if sentence.endswith(('?', '.')) else '.'}\n"


def counted(n: int, noun: str) -> str:
    """Return a number with its noun: ``1 batch``, ``2 batches``, ``1,000 arrivals``."""
    plural = f"{noun}es" if noun.endswith("ch") else f"{noun}s"
    return f"{n:,} {noun if n == 1 else plural}"
