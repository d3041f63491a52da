"""Counterexamples to one claim: how many there are, and the smallest of them in sentences."""

from model.windows.evidence import Truth, Window
from model.windows.query import Query

SHOWN_TUPLES = 8


class Findings:
    """Collects counterexamples; keeps the smallest one."""

    __slots__ = ("_size", "count", "sentence", "undetermined", "witness")

    def __init__(self) -> None:
        self.count = 0
        self._size = 0
        self.sentence = ""
        self.witness: tuple[str, ...] = ()
        self.undetermined = ""
        """Why nothing can be said, if so."""

    def add(self, size: int, sentence: str, *witness: str) -> None:
        """One more counterexample; ``size`` says how much a reader has to take in."""
        self.count += 1
        if self.count == 1 or (size, sentence) < (self._size, self.sentence):
            self._size = size
            self.sentence = sentence
            self.witness = witness


def name_of(truth: Truth[Query], window: Window) -> str:
    """A window, as a person would write it."""
    task, start_us, key = window
    of_key = f", key {key!r}" if truth.config.keyed else ""
    return f"window [{start_us}, {truth.end_us(window)}) of task {task}{of_key}"


def tuples_of(truth: Truth[Query], window: Window) -> str:
    """The distinct tuples of a window, in a sentence."""
    found = truth.windows.get(window, ())
    if not found:
        return "No accepted tuple belongs to it."
    shown = ", ".join(
        f"#{arrived.source_id} at {arrived.event_time_us} with {arrived.value:g} "
        f"(batch {arrived.batch})"
        for arrived in found[:SHOWN_TUPLES]
    )
    more = f", and {len(found) - SHOWN_TUPLES} more" if len(found) > SHOWN_TUPLES else ""
    return f"Its {len(found)} distinct tuples: {shown}{more}."
