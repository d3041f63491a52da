"""Silent streams: how far the watermark of a stream follows the other one, between epochs.

Source: docs/join.md, section 2.

Rules of this file:

* Nothing here looks at single pairs or workers: floors follow from what the two gates let in.
* A floor is known before the first arrival of its epoch, and never falls.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from model.join import chain
from model.join.rules import Setup, Step, Transition
from model.join.state import NO_PAIRS, Action, ChainState, lanes, other, source
from model.vocabulary import JoinConfig
from model.vocabulary.join import NO_WATERMARK_US, STREAMS


class Progress(NamedTuple):
    """Progress of one stream, as far as silence is concerned."""

    latest_us: int | None = None
    """Largest admitted event time; ``None`` before the first admission."""
    showed_life: bool = False
    """Whether an arrival was accepted since the epoch began."""
    mark_us: int | None = None
    """Largest event time of the other stream when this one last showed life."""
    floor_us: int = NO_WATERMARK_US
    """Least watermark that silence allows."""


AT_FIRST: Mapping[str, Progress] = dict.fromkeys(STREAMS, Progress())


def begin_epoch(config: JoinConfig, before: Mapping[str, Progress]) -> dict[str, Progress]:
    """Return the progress of both streams at the beginning of the next epoch."""
    found = {}
    for stream in STREAMS:
        own, other_us = before[stream], before[other(stream)].latest_us
        if own.showed_life or own.mark_us is None:
            own = own._replace(showed_life=False, mark_us=other_us)
        found[stream] = own._replace(floor_us=_floor_us(config, own, other_us))
    return found


def _floor_us(config: JoinConfig, own: Progress, other_us: int | None) -> int:
    idle_after_us, lateness_us = config.idle_after_us, config.lateness_us
    if idle_after_us is None or lateness_us is None or own.mark_us is None or other_us is None:
        return own.floor_us
    if other_us - own.mark_us <= idle_after_us:
        return own.floor_us
    return max(own.floor_us, other_us - lateness_us - idle_after_us)


# -------------------------------------------------------------------------------- small scopes


def with_silence(
    stream: str, floor_us: int, *, is_too_early: bool = False
) -> Mapping[str, Transition]:
    """Return a table in which a stream falls silent at its end, and its watermark moves on.

    Too early is when an arrival of the stream that is not late is still to come.
    """

    def can_rise(setup: Setup, state: ChainState) -> Iterator[Action]:
        at = source(state, stream)
        lane, _ = lanes(state.workers[at], stream)
        is_silent = is_too_early or not any(
            action.stream == stream for action in chain.TABLE["admit"].guard(setup, state)
        )
        if is_silent and lane.wm_us < floor_us:
            yield Action("silence", at, stream)

    def rise(_setup: Setup, state: ChainState, _action: Action) -> Step:
        return chain.raise_watermarks(state, {stream: floor_us}), NO_PAIRS

    return {**chain.TABLE, "silence": Transition(can_rise, rise)}
