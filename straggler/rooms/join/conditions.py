"""Join conditions as text, for example ``key and value within 2``."""

from model.vocabulary.join import COLUMNS, OPERATORS, And, Apart, Band, Equi, Ineq, Predicate
from model.vocabulary.settings import nearest

ANY = "any"
_AND = " and "
_NEAR, _FAR = "within", "apart"
GRAMMAR = (
    f"write {' or '.join(COLUMNS)} (the same in both), value {_NEAR} 2, value {_FAR} 2,"
    f" value < (R's against S's; {' '.join(OPERATORS)}), several with{_AND}between, or {ANY}"
)


def parse_condition(text: str) -> Predicate:
    """Parse a condition; raise ``ValueError`` with one sentence for anything else."""
    if text.strip() == ANY:
        return And()
    parts = tuple([_parse_part(text, part.split()) for part in text.split(_AND)])
    return parts[0] if len(parts) == 1 else And(parts)


def _parse_part(text: str, words: list[str]) -> Predicate:
    column, relation, number = (*words, "", "", "")[:3]
    if column not in COLUMNS or len(words) > 3:
        hint = nearest(column, COLUMNS)
        msg = f"{text!r} is not a condition: {GRAMMAR}{hint}"
        raise ValueError(msg)
    if len(words) == 1:
        return Equi(column)
    if len(words) == 2 and relation in OPERATORS:
        return Ineq(column, relation, column)
    if len(words) == 3 and relation in (_NEAR, _FAR):
        try:
            eps = float(number)
        except ValueError:
            msg = f"{number!r} in {text!r} is not a number"
            raise ValueError(msg) from None
        return Band(column, eps) if relation == _NEAR else Apart(column, eps)
    msg = f"{text!r} is not a condition: {GRAMMAR}"
    raise ValueError(msg)


def write_condition(predicate: Predicate) -> str:
    """Return a condition as text that :func:`parse_condition` parses, if the grammar allows it."""
    if isinstance(predicate, And):
        return _AND.join(write_condition(part) for part in predicate.parts) or ANY
    if isinstance(predicate, Equi):
        return predicate.column
    if isinstance(predicate, Ineq):
        return f"{predicate.left} {predicate.op}"
    relation = _NEAR if isinstance(predicate, Band) else _FAR
    eps = f"{predicate.eps:g}"
    return f"{predicate.column} {relation} {eps if float(eps) == predicate.eps else predicate.eps}"
