"""Two traces differ in what is missing, extra or different, counted one by one."""

from collections import Counter
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from model.checking.diff import compare
from model.vocabulary import Trace
from properties import profiles

EXAMPLES = profiles.choose(400, nightly=3_000)
"""Number of comparisons; few of them have pairs that differ a little."""
Rest = tuple[float, ...]
"""Fields of a step without its identity."""


class Sale(NamedTuple):
    """A step with an identity of one field."""

    shop: int
    day: int
    price: float


SALES = st.builds(
    Sale,
    st.sampled_from([0, 0, 1]),
    st.integers(0, 2),
    st.sampled_from([1.0, 1.0, 1.0 + 1e-9, 1.001, -1e9]),
)
SIDES = st.lists(SALES, min_size=1, max_size=5).flatmap(
    lambda few: st.tuples(*[st.lists(st.sampled_from(few), max_size=9)] * 2)
)
"""Two recordings of few different sales, many of them recorded several times."""


def one_of_each(sales: list[Sale]) -> list[tuple[int, float]]:
    """Return sales without their days; those that differ in the day alone are one.

    A sale that was recorded several times on some day counts as often as on its busiest day.
    """
    times = Counter(sales)
    found = []
    for shop, price in {(sale.shop, sale.price) for sale in sales}:
        found += [(shop, price)] * max(times[Sale(shop, day, price)] for day in range(3))
    return found


def counted(
    left: list[tuple[int, Rest]],
    right: list[tuple[int, Rest]],
    allowed: float,
    scale: float,
) -> tuple[int, int, int]:
    """Return how many steps are missing, extra and different, shop by shop."""
    missing = extra = different = 0
    for shop in range(3):
        ours, theirs = (sorted(rest for at, rest in each if at == shop) for each in (left, right))
        missing += max(0, len(ours) - len(theirs))
        extra += max(0, len(theirs) - len(ours))
        for one, other in zip(ours, theirs, strict=False):
            *days, a = one
            *other_days, b = other
            limit = allowed * max(abs(a), abs(b), scale)
            different += days != other_days or abs(a - b) > limit
    return missing, extra, different


@settings(max_examples=EXAMPLES)
@given(SIDES, st.booleans(), st.sampled_from([None, 1e-8, 0.01]), st.sampled_from([0.0, 200.0]))
def test_steps_are_paired_by_their_identity_and_counted(
    drawn: tuple[list[Sale], list[Sale]], ignored: bool, rel_tol: float | None, scale: float
) -> None:
    ours, theirs = drawn
    [found] = compare(
        Trace("ours", ours),
        Trace("theirs", theirs),
        (Sale,),
        identity={"sale": ("shop",)},
        ignore=("day",) if ignored else (),
        rel_tol=rel_tol,
        scales={"price": scale} if scale else {},
    ).kinds
    sides: list[list[tuple[int, Rest]]]
    if ignored:
        sides = [[(shop, (price,)) for shop, price in one_of_each(each)] for each in (ours, theirs)]
    else:
        sides = [[(shop, (day, price)) for shop, day, price in each] for each in (ours, theirs)]
    expected = counted(sides[0], sides[1], rel_tol or 0.0, scale)
    assert (found.missing, found.extra, found.different) == expected
    assert found.mismatches == sum(expected)
    assert len(found.sentences) == min(10, sum(expected))


@given(SIDES)
def test_without_an_identity_a_step_is_there_or_not(drawn: tuple[list[Sale], list[Sale]]) -> None:
    ours, theirs = drawn
    [found] = compare(Trace("a", ours), Trace("b", theirs), (Sale,), identity={}).kinds
    left, right = Counter(ours), Counter(theirs)
    assert found.missing == (left - right).total()
    assert found.extra == (right - left).total()
    assert found.different == 0
    assert found.compared == (left & right).total()
