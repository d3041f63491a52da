"""The system on trial: the Spark pipeline, or ``MODULE:FACTORY`` or ``exec:COMMAND`` of a user."""

import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

from model.vocabulary import System
from model.vocabulary.settings import JsonObject, nearest
from straggler.errors import UsageError
from straggler.judging.processes import DEFAULT_LIMITS, PREFIX, Limits, ProcessSystem
from straggler.rooms import Room

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SPARK = "spark"
"""Name of the Spark pipeline, in the place of MODULE:FACTORY."""


def local_master(slots: int, *, again: bool = False) -> str:
    """Return the master of a local session with ``slots`` task slots, at least two.

    ``again``: a task that fails is run once more.
    """
    return f"local[{max(2, slots)}{',2' if again else ''}]"


def troubled(trouble: Sequence[JsonObject]) -> System:
    """Return Spark's chain with trouble on its connections; Spark has to run."""
    from straggler.judging.trouble import Trouble, make_troubled

    return make_troubled([Trouble(**each) for each in trouble])


@contextmanager
def open_system(
    reference: str, master: str | None = None, limits: Limits = DEFAULT_LIMITS
) -> Iterator[Callable[[Room], System]]:
    """Give a function from a room to its system; Spark runs only inside the block, and if needed.

    ``limits`` are those of a command, which ends with the block. Raise :class:`UsageError` if the
    system is not available.
    """
    if reference.startswith(PREFIX):
        with closing(ProcessSystem(reference.removeprefix(PREFIX), limits)) as process:
            yield lambda room: process
        return
    if reference != SPARK:
        foreign = load_system(reference)
        yield lambda room: foreign
        return
    with open_session(master) as spark:
        _require_shared_folder(spark)
        yield lambda room: room.spark()


def _require_shared_folder(spark: "SparkSession") -> None:
    """Raise :class:`UsageError` if a worker does not see where systems keep their files."""
    context = spark.sparkContext
    if str(context.master).startswith("local"):
        return
    with tempfile.NamedTemporaryFile(prefix="straggler-shared-") as file:
        path = file.name
        slots = context.defaultParallelism
        seen = context.parallelize(range(slots), slots).map(lambda _: os.path.exists(path))
        if not all(seen.collect()):
            folder = tempfile.gettempdir()
            raise UsageError(
                f"workers of {context.master} do not see the files in {folder} of this machine;"
                " set TMPDIR to a folder that all machines share"
            )


@contextmanager
def open_session(master: str | None = None) -> Iterator["SparkSession"]:
    """Give a Spark session; raise :class:`UsageError` if it cannot be started."""
    # Imported here because it takes a second that most commands do not need.
    from spark_impl.runtime.session import EnvironmentProblem, session

    with ExitStack() as stack:
        try:
            spark = stack.enter_context(session(master))
        except EnvironmentProblem as problem:
            raise UsageError(str(problem)) from problem
        yield spark


def load_system(reference: str) -> System:
    """Call the factory named by ``package.module:factory`` and return its system.

    Modules in the current folder are found too. Raise :class:`UsageError` if there is no system.
    """
    factory = load_function(reference, "a system; write MODULE:FACTORY or exec:COMMAND", "factory")
    try:
        system: System = factory()
    except Exception as error:
        name = type(error).__name__
        raise UsageError(f"the factory {reference!r} raised {name}: {error}") from error
    if not callable(system):
        raise UsageError(f"{reference!r} returned {system!r}, which is not a System")
    return system


def names_of(reference: str, wanted: str) -> tuple[str, str]:
    """Return the names of ``MODULE:NAME``, without importing the module.

    ``wanted`` are words of the sentence. Raise :class:`UsageError` if there is no such module.
    """
    module_name, colon, name = reference.partition(":")
    if not (module_name and colon and name):
        raise UsageError(f"{reference!r} does not name {wanted}")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    first, _, rest = module_name.partition(".")
    try:
        spec = find_spec(first)
    except ValueError:  # of what is imported already, or of no name at all
        return module_name, name
    if spec is None or (rest and spec.submodule_search_locations is None):
        hint = nearest(module_name, [each.name for each in iter_modules([os.getcwd()])])
        raise UsageError(f"there is no module {module_name!r}{hint}")
    return module_name, name


def load_function(reference: str, wanted: str, kind: str) -> Callable[..., Any]:
    """Return what ``MODULE:NAME`` names; modules in the current folder are found too.

    ``wanted`` and ``kind`` are the words of the sentence. Raise :class:`UsageError` if there is no
    such module or name, or if what it names cannot be called.
    """
    module_name, function_name = names_of(reference, wanted)
    try:
        module = import_module(module_name)
    except (Exception, SystemExit) as error:  # a module may raise anything
        said = f"it exits with {error.code!r}" if isinstance(error, SystemExit) else error
        raise UsageError(f"module {module_name!r} cannot be imported: {said}") from error
    found: Callable[..., Any] | None = getattr(module, function_name, None)
    if found is None:
        names = [name for name in dir(module) if not name.startswith("_")]
        hint = nearest(function_name, names)
        raise UsageError(f"module {module_name!r} has no {function_name!r}{hint}")
    if not callable(found):
        raise UsageError(f"{reference!r} is not a {kind}, because it cannot be called")
    return found
