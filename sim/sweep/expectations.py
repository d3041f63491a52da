"""Expectations of an experiment, read from TOML."""

from collections.abc import Collection, Iterable, Mapping

from model.vocabulary.settings import look_up
from sim.sweep.experiment import (
    EFFORTS,
    Comparison,
    Expectation,
    Factor,
    Grid,
    Label,
    Measure,
    Reproduction,
)
from sim.sweep.toml import Table

COLUMNS = ("experiment", "effort", "run", "seed")
"""The first columns of every table of results."""

_KEYS = (
    *("says", "measure", "verdict", "assumptions", "where", "over", "compare", "as"),
    *("at_least", "at_most", "near", "tolerance", "along", "goes", "only"),
)
_BOUNDS = ("at_least", "at_most", "near")
OTHERS = "*"
"""Stands for each of the other levels."""


def expectation_of(
    table: Table, grids: Mapping[str, Grid], measures: Iterable[Measure]
) -> Expectation:
    """Read an entry of ``expect``; raise ``ValueError`` if it cannot be judged."""
    table.refuse_others(_KEYS)
    only = table.word("only", EFFORTS, "")
    judged = [only] if only else list(EFFORTS)
    verdict, assumptions = _verdict(table)
    factors = [{factor.name: factor for factor in grids[effort].factors} for effort in judged]
    along, is_rising = _direction(table, factors)
    at_least, at_most = _bounds(table, along)
    compare = _comparison(table, factors)
    where = where_of(table.table("where"), factors)
    over = tuple([_factor(table, "over", name, factors) for name in table.texts("over")])
    key, taken = ("compare", compare.factor) if compare else ("along", along)
    table.require(taken not in over, "over", taken, f"other factors than {taken!r}")
    good = compare is None or compare.factor not in where
    table.require(good, "where", taken, f"other factors than {taken!r}, which is compared")
    for each in factors if taken else ():
        levels = where.get(taken, each[taken].labels)
        table.require(len(levels) > 1, key, taken, "a factor with two levels or more")
    return Expectation(
        says=table.text("says"),
        measure=table.word("measure", [measure.name for measure in measures]),
        verdict=verdict,
        assumptions=assumptions,
        where=where,
        over=over,
        compare=compare,
        at_least=at_least,
        at_most=at_most,
        along=along,
        is_rising=is_rising,
        only=only,
    )


def _verdict(table: Table) -> tuple[Reproduction, str]:
    verdicts = {each.value: each for each in Reproduction}
    verdict = look_up(f"{table.place}verdict", table.text("verdict"), verdicts)
    assumptions = table.text("assumptions", "")
    needed = verdict is Reproduction.UNDER_ASSUMPTIONS
    only_with = Reproduction.UNDER_ASSUMPTIONS.value
    expected = f"a sentence if the verdict is {only_with!r}, and empty otherwise"
    table.require(bool(assumptions) == needed, "assumptions", assumptions, expected)
    return verdict, assumptions


_Factors = list[dict[str, Factor]]
"""Factors by name, one mapping for each effort in which the expectation is judged."""


def _factor(table: Table, key: str, name: str, factors: _Factors) -> str:
    for each in factors:
        look_up(f"{table.place}{key}", name, each)
    return name


def _level(table: Table, name: str, label: object, factors: _Factors) -> Label:
    """Read a level; it must exist in every effort in which the expectation is judged."""
    for each in factors:
        labels = each[name].labels
        good = isinstance(label, int | float | str) and label in labels
        table.require(good, name, label, f"one of {', '.join(map(str, labels))}")
    assert isinstance(label, int | float | str)
    return label


def where_of(table: Table, factors: _Factors) -> dict[str, tuple[Label, ...]]:
    """Read the levels to which an expectation is limited, by factor."""
    found = {}
    for name, value in table.values.items():
        _factor(table, name, name, factors)
        values = value if isinstance(value, list) else [value]
        table.require(bool(values), name, value, "a level, or a list of at least one")
        found[name] = tuple([_level(table, name, each, factors) for each in values])
    return found


def _comparison(table: Table, factors: _Factors) -> Comparison | None:
    kind = table.word("as", ("ratio", "difference"), "ratio")
    if not table.has("compare"):
        table.require(not table.has("as"), "as", kind, "left out where nothing is compared")
        return None
    compared = table.table("compare")
    good = len(compared.values) == 1
    table.require(good, "compare", compared.values, "one factor with two of its levels")
    (name,) = compared.values
    _factor(table, "compare", name, factors)
    levels = compared.list(name)
    good = len(levels) == 2 and levels[0] != levels[1]
    compared.require(good, name, levels, f"two levels, or one and {OTHERS!r}")
    second = None if levels[1] == OTHERS else _level(compared, name, levels[1], factors)
    return Comparison(name, _level(compared, name, levels[0], factors), second, kind)


def _direction(table: Table, factors: _Factors) -> tuple[str, bool]:
    if not table.has("along"):
        goes = table.values.get("goes")
        table.require(goes is None, "goes", goes, "left out without along")
        return "", True
    along = _factor(table, "along", table.text("along"), factors)
    return along, table.word("goes", ("up", "down")) == "up"


def _bounds(table: Table, along: str) -> tuple[float | None, float | None]:
    at_least, at_most, near = (table.number(key) for key in _BOUNDS)
    given = [key for key in _BOUNDS if table.has(key)]
    if along:
        _refuse(table, given, f"left out beside along, which is {along!r}")
        _refuse(table, [key for key in ("compare",) if table.has(key)], "left out beside along")
        return None, None
    if not given:
        msg = f"{table.place}measure has no bound: at_least, at_most, near or along is missing"
        raise ValueError(msg)
    tolerance = table.number("tolerance")
    if near is None:
        _refuse(table, [key for key in ("tolerance",) if table.has(key)], "left out without near")
        good = at_least is None or at_most is None or at_least <= at_most
        table.require(good, "at_least", at_least, f"at most at_most, which is {at_most}")
        return at_least, at_most
    table.require(len(given) == 1, given[0], table.values[given[0]], "the only bound beside near")
    if tolerance is None:
        msg = f"{table.place}tolerance is missing beside near"
        raise ValueError(msg)
    table.require(tolerance >= 0, "tolerance", tolerance, "at least 0")
    return near - tolerance, near + tolerance


def _refuse(table: Table, keys: Collection[str], expected: str) -> None:
    for key in keys:
        table.require(False, key, table.values[key], expected)
