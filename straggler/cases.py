"""Cases of a room: one comparison for each query on each input that the options select."""

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from model.vocabulary import Event, Workload
from model.vocabulary.settings import JsonObject
from straggler.inputs.inputs import PUBLISHED, missing_recording, recordings_by_name
from straggler.inputs.set_aside import SetAside
from straggler.inputs.tables import cuts_into
from straggler.options import Arguments
from straggler.rooms import Case, SkippedInput


class Input(Protocol):
    """Arrivals with the names under which a user knows them."""

    @property
    def name(self) -> str:
        """Name as the user gives it."""
        ...

    @property
    def label(self) -> str:
        """Name as it is shown, for example with the word simulated."""
        ...

    @property
    def events(self) -> tuple[Event, ...]:
        """Arrivals, in order."""
        ...

    @property
    def set_aside(self) -> tuple[SetAside, ...]:
        """Bad rows of the files that were read."""
        ...


class Query(Protocol):
    """The configuration of a room."""

    def to_json(self) -> JsonObject:
        """Return all settings by name."""
        ...


def why_missing(name: str) -> str | None:
    """Return why input ``name`` cannot be used, if it is a recording that is absent."""
    is_absent = name in PUBLISHED and name not in recordings_by_name()
    return missing_recording(name) if is_absent else None


def select_inputs(
    args: Arguments,
    usual: Iterable[str],
    reason: Callable[[str], str | None] = why_missing,
) -> Iterator[str | SkippedInput]:
    """Yield the names of the inputs to compare: those of ``--input``, or the ``usual`` ones.

    A usual input that is absent is yielded as :class:`SkippedInput`; ``reason`` says why.
    """
    if args.input:
        yield from args.input
        return
    for name in usual:
        why = reason(name)
        yield name if why is None else SkippedInput(name, why)


def make_case(
    room: str,
    source: Input,
    query: Query,
    title: str,
    args: Arguments,
    *,
    batches: int,
    in_order: bool = False,
) -> Case:
    """Return the comparison of one query on one input.

    Arrivals are cut into ``--batches`` micro-batches, or ``batches`` without that option.
    """
    workload = Workload(
        room,
        source.events,
        query.to_json(),
        cuts_into(len(source.events), args.batches or batches),
        seed=args.seed,
        name=f"{source.name}, {title}",
    )
    return Case(source.name, source.label, title, workload, in_order, source.set_aside)
