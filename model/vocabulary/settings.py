"""Checks of settings: each raises ``ValueError`` with one sentence that names the value."""

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from difflib import get_close_matches

TOO_LONG_US = 1 << 61
"""Lengths of time below this, beyond all calendars, leave room for arithmetic in 64 bits."""


def is_int(value: object) -> bool:
    """Whether it is an integer, which a truth value is not."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: object) -> bool:
    """Whether it is an integer or a float, which a truth value is not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def one_of(names: tuple[str, ...]) -> str:
    """What a setting with some possible values must be."""
    return "one of " + ", ".join(names)


def nearest(word: str, known: Iterable[str]) -> str:
    """Return ``"; did you mean 'x'?"`` for the known word closest to ``word``, or nothing."""
    found = get_close_matches(word, list(known), n=1)
    return f"; did you mean {found[0]!r}?" if found else ""


def require(good: bool, name: str, value: object, expected: str) -> None:
    """Refuse a setting that is not as expected."""
    if not good:
        msg = f"{name} is {value!r}; it must be {expected}"
        raise ValueError(msg)


def require_integers(
    config: object, positive: Sequence[str], not_negative: Sequence[str], optional: Sequence[str]
) -> None:
    """Refuse settings that are no integers of their range; ``optional`` ones may be None."""
    for name in positive:
        require(is_int(getattr(config, name)), name, getattr(config, name), "an integer")
        require(getattr(config, name) > 0, name, getattr(config, name), "greater than 0")
    given = (name for name in optional if getattr(config, name) is not None)
    for name in (*not_negative, *given):
        require(is_int(getattr(config, name)), name, getattr(config, name), "an integer")
        require(getattr(config, name) >= 0, name, getattr(config, name), "at least 0")
    for name in (*positive, *not_negative, *optional):
        if name.endswith("_us") and (value := getattr(config, name)) is not None:
            require(value < TOO_LONG_US, name, value, "less than 2^61")


def require_known(given: Iterable[str], known: AbstractSet[str], needed: Iterable[str]) -> None:
    """Refuse names of settings that there are not, and the lack of those that are needed."""
    names = set(given)
    for name in sorted(names - known):
        msg = f"unknown setting {name!r}; known are {', '.join(sorted(known))}"
        raise ValueError(msg)
    for name in needed:
        if name not in names:
            msg = f"the setting {name!r} is missing"
            raise ValueError(msg)
