"""The Python interpreters of a session: which one its workers run, and what is wrong with it.

The driver's interpreter is ``sys.executable``. PySpark lets workers run what ``PYSPARK_PYTHON``
names, or else the first ``python3`` on their ``PATH``. On the driver's own machine that is another
interpreter, or none, unless the user has activated the driver's environment.
"""

import importlib.util
import os
import platform
import re
import sys

from pyspark import SparkContext

_VARIABLE = "PYSPARK_PYTHON"
_SETTING = "spark.pyspark.python"
_DEFAULT = "python3"
"""Interpreter of workers if nobody has chosen one."""
_OURS = ("model", "spark_impl", "straggler")
_VERSION = re.compile(r"Python in worker has different version: \d+\.\d+")
_MODULE = re.compile(r"No module named '?(\w+)(?:\.\w+)*'?")
_PROGRAM = re.compile(r'Cannot run program "([^"]*)": error=\d+, ([^\n]+)')
_NO_WORKER = "Error from python worker"


def choose_interpreter(context: SparkContext) -> None:
    """Let the workers of a local master run the driver's interpreter, unless the user chose one.

    A choice is the variable ``PYSPARK_PYTHON``, the setting ``spark.pyspark.python``, which PySpark
    itself reads in ``spark-submit`` only, or another value in ``context.pythonExec``. Functions
    that were given to Spark before keep their interpreter.
    """
    if context.pythonExec != _DEFAULT or os.environ.get(_VARIABLE):
        return
    chosen = context.getConf().get(_SETTING)
    if chosen or is_local(context):
        context.pythonExec = chosen or sys.executable


def is_local(context: SparkContext) -> bool:
    """Return whether all workers run on the driver's machine, as processes of its own."""
    return str(context.master).startswith("local")


def explain_mismatch(text: str) -> str | None:
    """Return a sentence that names both interpreters, if Spark's error is about the workers' one.

    Return ``None`` for any other error: also for a module that the driver lacks, too.
    """
    context = SparkContext._active_spark_context
    if context is None:
        return None
    reason = _reason_in(text, context)
    if reason is None:
        return None
    version = platform.python_version()
    minor = version.rpartition(".")[0]
    return (
        f"the driver runs {sys.executable} (Python {version}), its workers run"
        f" {context.pythonExec}: {reason}; set {_VARIABLE} to an interpreter of version {minor}"
        " that has the packages of Straggler on every machine"
    )


def _reason_in(text: str, context: SparkContext) -> str | None:
    """Return what an error says against the workers' interpreter, ``None`` if it says nothing."""
    if refused := _VERSION.search(text):
        return refused[0]
    program = _PROGRAM.search(text)
    if program and program[1] == context.pythonExec:
        return program[2]
    module = _MODULE.search(text)
    if module:
        name = module[1]
        if name in _OURS and not is_local(context):  # the archive is missing, not a package
            return None
        if name in sys.modules or importlib.util.find_spec(name) is not None:
            return module[0]
    return "it cannot run Spark's worker" if _NO_WORKER in text else None
