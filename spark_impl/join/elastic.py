"""Another number of workers between two epochs (docs/join.md, section 7).

Rules of this file:

* The chain is quiet: what its workers hold is all there is, and pairs that have not met are those
  of an r that lies left of an s.
* What two old workers hold becomes that of one new worker only after these pairs have met.
* Where one old worker becomes several, no r comes to lie left of an s: these have met.
"""

from collections.abc import Callable

from spark_impl.join.checkpoint import empty_state
from spark_impl.join.lane import WorkerState
from spark_impl.join.matching import Pairs, Tuples
from spark_impl.join.side import Matcher


def adopt(
    load: Callable[[int], WorkerState], old: int, new: int, number: int, matcher: Matcher
) -> tuple[WorkerState, list[list[Pairs]]]:
    """What worker ``number`` of ``new`` holds where there were ``old``, and pairs that met by it.

    ``load`` gives what an old worker holds; there is at least one. Pairs come by query.
    """
    if new <= old:
        first, end = number * old // new, (number + 1) * old // new
        return _merged([load(each) for each in range(first, end)], matcher)
    # The old worker whose new ones number is among; the last of them are those at the ends.
    origin = ((number + 1) * old - 1) // new
    first, end = origin * new // old, (origin + 1) * new // old
    state = load(origin)
    return _part(state, number == first, number == end - 1), [[] for _ in matcher.queries]


def _merged(states: list[WorkerState], matcher: Matcher) -> tuple[WorkerState, list[list[Pairs]]]:
    """Neighbours, from left to right, as one worker."""
    merged, *others = states
    found: list[list[Pairs]] = [[] for _ in matcher.queries]
    for right in others:
        for kept, pairs in zip(found, matcher.match(merged.r, right.s), strict=True):
            kept.append(pairs)
        merged = WorkerState(
            r=Tuples.concat([right.r, merged.r]),
            s=Tuples.concat([merged.s, right.s]),
            r_wm_us=right.r_wm_us,
            s_wm_us=merged.s_wm_us,
            r_intake=merged.r_intake,
            s_intake=right.s_intake,
        )
    return merged, found


def _part(state: WorkerState, is_leftmost: bool, is_rightmost: bool) -> WorkerState:
    """One of the workers that one becomes: S goes to the leftmost, R to the rightmost of them."""
    nothing = empty_state()
    return state._replace(
        r=state.r if is_rightmost else nothing.r,
        s=state.s if is_leftmost else nothing.s,
        r_intake=state.r_intake if is_leftmost else None,
        s_intake=state.s_intake if is_rightmost else None,
    )
