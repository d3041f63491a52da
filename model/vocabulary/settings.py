"""Checks of settings: each raises ``ValueError`` with one sentence that names the value."""


def is_int(value: object) -> bool:
    """Whether it is an integer, which a truth value is not."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: object) -> bool:
    """Whether it is an integer or a float, which a truth value is not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def one_of(names: tuple[str, ...]) -> str:
    """What a setting with some possible values must be."""
    return "one of " + ", ".join(names)


def require(good: bool, name: str, value: object, expected: str) -> None:
    """Refuse a setting that is not as expected."""
    if not good:
        msg = f"{name} is {value!r}; it must be {expected}"
        raise ValueError(msg)
