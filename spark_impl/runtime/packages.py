"""Our own packages and the right interpreter, and how Spark's Python processes come by them.

Workers of other machines get an archive: with ``spark-submit --py-files``, or from
:func:`spark_impl.runtime.session.session`. Spark does not send archives to the process beside the
driver that prepares stateful operators; :func:`prepare_workers` lets that process import the
packages of the driver.

The driver's interpreter is ``sys.executable``. PySpark lets workers run what ``PYSPARK_PYTHON``
names, or else the first ``python3`` on their ``PATH``. On the driver's own machine that is another
interpreter, or none, unless the user has activated the driver's environment.
"""

import io
import os
import site
import sys
import zipfile
from pathlib import Path

from pyspark import SparkContext

SHIPPED = ("model/__init__.py", "model/vocabulary", "spark_impl", "straggler/__init__.py")
"""The files and folders that jobs and their Python workers import."""
ROOT = Path(__file__).resolve().parents[2]
"""The folder that holds our packages, or the archive from which they were imported."""
_DATE = (1980, 1, 1, 0, 0, 0)
_DEFAULT = "python3"
"""Interpreter of workers if nobody has chosen one."""


def archive() -> bytes:
    """Return a zip of what jobs import, with the same bytes for the same sources.

    If our packages were imported from an archive, return that whole archive.
    """
    if ROOT.is_file():
        return ROOT.read_bytes()
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as out:
        for path in (ROOT / name for name in SHIPPED):
            for source in [path] if path.is_file() else sorted(path.rglob("*.py")):
                entry = zipfile.ZipInfo(source.relative_to(ROOT).as_posix(), _DATE)
                out.writestr(entry, source.read_bytes(), zipfile.ZIP_DEFLATED)
    return target.getvalue()


def prepare_workers(context: SparkContext) -> None:
    """Let Python processes of a session run the right interpreter, and find our packages.

    On this machine they find our packages where the driver has them. If our packages are installed,
    every interpreter finds its own copy.
    """
    choose_interpreter(context)
    if str(ROOT) in (*site.getsitepackages(), site.getusersitepackages()):
        return
    paths = [path for path in context.environment.get("PYTHONPATH", "").split(os.pathsep) if path]
    if str(ROOT) not in paths:
        context.environment["PYTHONPATH"] = os.pathsep.join([*paths, str(ROOT)])


# ------------------------------------------------------------------------------------- interpreters


def choose_interpreter(context: SparkContext) -> None:
    """Let the workers of a local master run the driver's interpreter, unless the user chose one.

    A choice is the variable ``PYSPARK_PYTHON``, the setting ``spark.pyspark.python``, which PySpark
    itself reads in ``spark-submit`` only, or another value in ``context.pythonExec``. Functions
    that were given to Spark before keep their interpreter.
    """
    if context.pythonExec != _DEFAULT or os.environ.get("PYSPARK_PYTHON"):
        return
    chosen = context.getConf().get("spark.pyspark.python")
    if chosen or str(context.master).startswith("local"):  # then workers run on this machine
        context.pythonExec = chosen or sys.executable
