"""Wrong changes of a right trace of room ``grouping``, each with the claim that must notice it."""

from model.grouping.claims import (
    ANSWERS,
    CANDIDATE,
    FEW,
    HEAVY,
    LEAST,
    ONCE,
    PARTIALS,
    REJECTIONS,
)
from model.vocabulary import Event, Workload
from model.vocabulary.grouping import Answer, Heavy, Partial, Rejected, Route
from model.vocabulary.settings import PlainData
from tests.quality.changes import Change, Changed, at, extra, without

KEYS = "aaaaab" + "aaaabc" + "aad"
VALUES = (1.0, 2.0, 2.0, 4.0, 8.0, 1.0, 3.0, 3.0, 5.0, 6.0, 2.0, float("nan"), 1.0, 7.0, 9.0)
ARRIVALS = tuple(
    Event(seq, seq, key, 100, value, 100)
    for seq, (key, value) in enumerate(zip(KEYS, VALUES, strict=True))
)
CONFIG: dict[str, PlainData] = {"instances": 3, "window_tuples": 6, "times_us": [[0, [1, 1, 4]]]}
CASE = Workload("grouping", ARRIVALS, CONFIG, (6, 12))
SENDERS = CASE.with_(config={**CONFIG, "senders": 2})
PKG = CASE.with_(config={**CONFIG, "policy": "pkg"})
TURNS = CASE.with_(config={**CONFIG, "policy": "round-robin"})


def elsewhere(position: int, ahead: int = 1) -> Change:
    """Send one tuple to another instance."""
    return lambda steps: [
        step._replace(instance=(step.instance + ahead) % 3) if n == position else step
        for n, step in enumerate(steps)
    ]


CHANGES: tuple[Changed, ...] = tuple(
    Changed(*each)
    for each in (
        (CASE, Route, without(0), ONCE, "Arrival 0 (key 'a') went to 0 instances"),
        (CASE, Route, extra(Route(3, 0, 1)), ONCE, "went to 2 instances"),
        (CASE, Route, at(2, instance=3), ONCE, "went to unknown instance 3"),
        (SENDERS, Route, at(2, sender=1), ONCE, "it came to sender 0"),
        (CASE, Route, extra(Route(99, 0, 0)), ONCE, "Arrival 99 was routed"),
        (PKG, Route, elsewhere(5, ahead=2), CANDIDATE, "candidates of key 'b' are"),
        (TURNS, Route, elsewhere(5), CANDIDATE, "candidates of key 'b' are (2,)"),
        (PKG, Route, elsewhere(3), LEAST, "best of the candidates"),
        (CASE, Heavy, without(0), HEAVY, "Key 'a' is not heavy in window 1, with"),
        (CASE, Heavy, extra(Heavy(1, "a", 5, 0, 6, (0, 1))), HEAVY, "keys, 2 different ones"),
        (CASE, Heavy, at(0, counted=4), HEAVY, "1 has count 4 with error 0; its frequency is 5"),
        (CASE, Heavy, at(0, counted=6), HEAVY, "its frequency is 5"),
        (CASE, Heavy, at(0, error=1), HEAVY, "more than 6 / 30"),
        (CASE, Heavy, at(0, tuples=7), HEAVY, "was counted among 7 tuples"),
        (CASE, Heavy, extra(Heavy(1, "z", 0, 0, 6, (0, 1))), HEAVY, "0 of 6, which is not heavy"),
        (CASE, Heavy, extra(Heavy(0, "a", 5, 0, 6, (0, 1, 2))), HEAVY, "Window 0 has heavy keys"),
        (CASE, Heavy, at(0, candidates=(0, 2)), CANDIDATE, "heavy key 'a' in window 1 are (0, 2)"),
        (CASE, Heavy, at(0, candidates=(0,)), FEW, "only the candidates (0,)"),
        (CASE, Partial, without(0), PARTIALS, "There is no single partial aggregate"),
        (CASE, Partial, at(0, total=0.5), PARTIALS, "is wrong; it got"),
        (CASE, Partial, extra(Partial(2, 0, "z", 1, 1.0, 1.0, 1.0)), PARTIALS, "'z' in window 2"),
        (CASE, Answer, without(0), ANSWERS, "There is no single answer for key 'a'"),
        (CASE, Answer, at(0, total=17.5), ANSWERS, "its values are 1, 2, 4, 8, 2"),
        (CASE, Answer, at(0, distinct=5), ANSWERS, "is wrong"),
        (CASE, Answer, at(0, top=(8.0, 4.0, 1.0)), ANSWERS, "is wrong"),
        (CASE, Answer, extra(Answer(1, "c", 1, 1.0, 1.0, 1.0, 1, (1.0,))), ANSWERS, "in window 1"),
        (CASE, Rejected, without(0), REJECTIONS, "Arrival 11 is not rejected"),
        (CASE, Rejected, extra(Rejected(3, "x")), REJECTIONS, "Arrival 3 is rejected: x"),
    )
)
