"""``straggler package``: write the archive that Spark's workers import."""

import shlex
import zipfile
from pathlib import Path

from straggler.cli import render
from straggler.cli.commands import Command
from straggler.cli.outputs import refuse_unwritable
from straggler.errors import UsageError, counted
from straggler.options import PATH, Arguments, Option

EXAMPLES = """\
examples:
  straggler package
  straggler package --output build/straggler.zip

The same sources give the same bytes. The archive holds the pipelines, without models, simulations
and this command line. docs/production.md says what else a cluster needs.
"""


def make_command(summary: str) -> Command:
    """Return the command with the option for the archive."""
    default = Path("straggler.zip")
    archive = Option(
        "--output", f"the archive ({default})", type=PATH, metavar="FILE.zip", default=default
    )
    return Command(summary, EXAMPLES, [archive], run)


def run(args: Arguments) -> int:
    """Write the archive and print how to submit a job with it."""
    path: Path = args.output
    refuse_unwritable("--output", path)
    _refuse_other_files(path)
    # Imported here because pyarrow and PySpark take a second that a refusal does not need.
    from spark_impl.runtime.packages import archive
    from spark_impl.runtime.storage import InputProblem, locate

    content = archive()
    try:
        locate(path.resolve()).write_bytes(content)
    except InputProblem as problem:
        raise UsageError(f"--output: {problem}") from problem
    with zipfile.ZipFile(path) as written:
        modules = counted(len(written.namelist()), "module")
    submit = f"  spark-submit --py-files {shlex.quote(str(path))} JOB.py"
    lines = [f"{path}: {modules}, {len(content):,} bytes. Submit a job with it:", "", submit]
    render.print_lines(render.console(), lines)
    return 0


def _refuse_other_files(path: Path) -> None:
    """Raise :class:`UsageError` unless ``path`` is, or may become, an archive."""
    name = f"--output {str(path)!r}"
    if path.suffix != ".zip":
        raise UsageError(f"{name}: its name must end in .zip, or Python does not look into it")
    if path.exists() and not zipfile.is_zipfile(path):
        raise UsageError(f"{name} is no archive; it would be overwritten")
