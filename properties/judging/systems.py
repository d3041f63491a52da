"""The system that is judged: the Spark pipeline, or ``MODULE:FACTORY`` of somebody else."""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from typing import TYPE_CHECKING

from model.vocabulary import System
from model.vocabulary.settings import nearest
from properties.errors import UsageError
from properties.rooms import Room

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SPARK = "spark"
"""What the Spark pipeline is called where a foreign system has its MODULE:FACTORY."""


def local_master(slots: int) -> str:
    """The master of a session with at least so many task slots on this machine, at least two."""
    return f"local[{max(2, slots)}]"


@contextmanager
def opened(reference: str, master: str | None = None) -> Iterator[Callable[[Room], System]]:
    """A system for each room; Spark runs as long as it is used, and not for a foreign one.

    Raises :class:`UsageError` with one sentence when it cannot be had.
    """
    if reference != SPARK:
        foreign = load_system(reference)
        yield lambda room: foreign
        return
    with session_of(master):
        yield lambda room: room.spark()


@contextmanager
def session_of(master: str | None = None) -> Iterator["SparkSession"]:
    """A session of Spark, or :class:`UsageError` with one sentence when it cannot be had."""
    # Imported here, for it takes a second that nothing else on the command line needs.
    from spark_impl.runtime.session import EnvironmentProblem, session

    with ExitStack() as stack:
        try:
            with interrupts_held_back():
                spark = stack.enter_context(session(master))
        except EnvironmentProblem as problem:
            raise UsageError(str(problem)) from problem
        yield spark


@contextmanager
def interrupts_held_back() -> Iterator[None]:
    """Let Ctrl-C wait until the end of this block.

    PySpark, interrupted while it starts Java, forgets that process, which then never ends. The
    handler that PySpark sets for later goes, too: it talks to Java from within the handler, which
    fails when an interrupted call to Java is under way.
    """
    came: list[int] = []

    def remember(number: int, _frame: object) -> None:
        came.append(number)

    before = signal.signal(signal.SIGINT, remember)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if came:  # even if an error is under way: it may come of the interrupt
            signal.raise_signal(signal.SIGINT)


def load_system(reference: str) -> System:
    """Call the factory that ``package.module:factory`` names; it returns a System.

    Modules in the current folder are found, too. Raises :class:`UsageError` with one sentence.
    """
    module_name, colon, factory_name = reference.partition(":")
    if not (module_name and colon and factory_name):
        raise UsageError(f"{reference!r} does not name a system: write MODULE:FACTORY")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        module = import_module(module_name)
    except Exception as error:  # a module may raise anything while it is imported
        raise UsageError(f"module {module_name!r} cannot be imported: {error}") from error
    factory = getattr(module, factory_name, None)
    if factory is None:
        names = [name for name in vars(module) if not name.startswith("_")]
        hint = nearest(factory_name, names)
        raise UsageError(f"module {module_name!r} has no {factory_name!r}{hint}")
    if not callable(factory):
        raise UsageError(f"{reference!r} is not a factory: it cannot be called")
    try:
        system: System = factory()
    except Exception as error:
        name = type(error).__name__
        raise UsageError(f"the factory {reference!r} raised {name}: {error}") from error
    if not callable(system):
        raise UsageError(f"{reference!r} returned {system!r}, which is not a System")
    return system
