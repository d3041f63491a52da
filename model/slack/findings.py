"""Counterexamples to one claim: how many there are, and the smallest of them in sentences."""

from typing import Any

from model.slack.evidence import Truth, Window

SHOWN_TUPLES = 8


class Findings:
    """Collects counterexamples; keeps the one of the smallest rank."""

    __slots__ = ("_rank", "count", "sentence", "undetermined", "witness")

    def __init__(self) -> None:
        self.count = 0
        self._rank: tuple[Any, ...] = ()
        self.sentence = ""
        self.witness: tuple[str, ...] = ()
        self.undetermined = ""
        """Why nothing can be said, if so."""

    def add(self, rank: tuple[Any, ...], sentence: str, *witness: str) -> None:
        """One more counterexample. Ranks are compared; the smallest one is shown."""
        self.count += 1
        if self.count == 1 or rank < self._rank:
            self._rank = rank
            self.sentence = sentence
            self.witness = witness


def name_of(truth: Truth, window: Window) -> str:
    """A window, as a person would write it."""
    task, start_us, key = window
    of_key = f", key {key!r}" if truth.config.keyed else ""
    return f"window [{start_us}, {truth.end_us(window)}) of task {task}{of_key}"


def tuples_of(truth: Truth, window: Window) -> str:
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
