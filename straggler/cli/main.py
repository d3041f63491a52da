"""The ``straggler`` command line.

Exit codes: 0 holds, 1 broken, 2 usage or environment, 3 undetermined, 130 interrupted. Every error
is one sentence on stderr.
"""

import errno
import io
import logging
import os
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, TextIO

from model.vocabulary.extras import describe_missing, installation
from straggler.cli.interrupts import report_interrupts
from straggler.errors import UsageError, format_error, refuse_unknown

if TYPE_CHECKING:
    import click

COMMANDS = {
    "diff": "compare the Spark pipeline, or your implementation, with the reference, on data",
    "check": "judge a Structured Streaming job of yours on small random streams with late rows",
    "workload": "write the input of a comparison, for systems in any language",
    "judge": "judge the answers of a system in any language, from files, without Spark and Java",
    "explore": "explore every behaviour of a model in a small scope",
    "sim": "simulate one timed run of a room: the cost of waiting, missing and correcting",
    "sweep": "run experiments over grids of settings and seeds, in parallel, resumable",
    "report": "write results of sweeps as one page: what was published, what came out, verdicts",
    "replay": "run a stored counterexample again; exit code 1 if it still fails",
    "conformance": "judge engines of others, and write the page of their verdicts",
    "errata": "show published rules that break their promises, each with a small counterexample",
    "join": "submit, withdraw and list queries of a chain in another process, and read answers",
    "script": "check, explain and run sensor scripts",
    "ledger": "say where each row is that was handed in to a query, without Spark",
    "package": "write the archive that workers of a cluster import, for spark-submit --py-files",
}
"""Summaries of the commands; ``x`` is the module ``straggler.cli.x`` with ``make_command``."""
EXTRAS = {
    "diff": ("spark",),
    "check": ("spark", "test"),
    "replay": ("spark", "test"),
    "conformance": ("test",),
    "script": ("spark",),
    "join": ("spark",),
    "package": ("spark",),
}
"""Extras that a command needs, but for ``sim``, which all need."""
ABOUT = "Reference models and property tests for late data and slow workers, on Spark."
TRACEBACK_VARIABLE = "STRAGGLER_TRACEBACK"
FULL = (errno.ENOSPC, errno.EDQUOT)
"""Numbers of the errors of a full disk."""

EPILOG = """\
examples:
  straggler diff all                               every room on its default inputs
  straggler diff slack --input flights             one recording
  straggler diff slack --input trips.csv --event-time picked_up --value fare \\
      --time-unit iso --window 1h --slide 5min     your own file
  straggler diff slack --system mypackage:make     your implementation instead of ours
  straggler check jobs:minutes --schema "device string, at timestamp" --event-time at
  straggler workload slack --input umts --output work.jsonl
  straggler judge work.jsonl trace.jsonl           answers of a system in any language
  straggler explore slack                          every behaviour of a small model
  straggler sim slack --seed 7 --plot run.svg      one timed run
  straggler sweep                                  published experiments, simulated
  straggler report                                 results of sweeps as one page
  straggler replay counterexamples/slack-1a2b.json
  straggler conformance                            engines of others
  straggler errata                                 published rules that do not hold
  straggler script explain *.script                the plan of sensor scripts
  straggler join status /data/chain                the queries of a chain that runs
  straggler ledger /data/power                     each row that was handed in
  straggler package                                what workers of a cluster import

words:
  room         one published design: slack, join, grouping, watermark or script
  workload     the input of a comparison: arrivals in order, a query and a seed
  trace        what a system observed of a workload: answers, late rows, corrections
  claim        a sentence that a trace keeps or breaks
  slack        how long windows wait for late rows before they answer
  explore      try every order of events of a model that has only a few
  errata       rules of published designs that break what the designs promise
  conformance  whether engines of others keep the same promises
  ledger       where each row is that was handed in

exit codes: 0 holds, 1 broken, 2 usage or environment, 3 undetermined, 130 interrupted
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    # Libraries log errors with a stack trace before they raise them; one sentence is enough.
    words = sys.argv[1:] if arguments is None else list(arguments)
    logged_before = logging.root.manager.disable
    logging.disable()
    _escape_output()
    try:
        with report_interrupts():
            return int(_run(words))
    except UsageError as error:
        return _refuse(str(error), 2)
    except KeyboardInterrupt:
        return _refuse("interrupted", 130)
    except BrokenPipeError:
        _discard(sys.stdout, sys.stderr)  # their reader has seen enough
        return 0
    except ModuleNotFoundError as error:
        return _explain_missing(words, error)
    except Exception as error:  # a bug, or a full disk: still one sentence
        if isinstance(error, OSError) and error.errno in FULL:
            _discard(sys.stdout)
            name = "the output" if error.filename is None else repr(error.filename)
            return _refuse(f"{name} cannot be written: {error.strerror}", 2)
        if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
            return _refuse(f"{error.filename!r} cannot be a file: {error.strerror}", 2)
        if os.environ.get(TRACEBACK_VARIABLE):
            traceback.print_exc()
        what = f"{type(error).__name__}: {error}"
        hint = f"set {TRACEBACK_VARIABLE}=1 to see where"
        return _refuse(f"unexpected error {what}; {hint}", 2)
    finally:
        logging.disable(logged_before)


def _discard(*streams: TextIO) -> None:
    """Let nothing more be written to streams, not even what they hold at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in streams:
        with suppress(OSError):  # a stream that is no file has no number
            os.dup2(nowhere, stream.fileno())


def _escape_output() -> None:
    """Escape characters that the encoding of the terminal lacks, instead of failing on them.

    A stream that is closed from the start becomes one that discards everything.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            nowhere = io.FileIO(os.open(os.devnull, os.O_WRONLY), "w", closefd=False)
            setattr(sys, name, io.TextIOWrapper(nowhere, write_through=True))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _run(arguments: list[str]) -> int:
    # Imported here because it takes a while, and Ctrl-C has to work from the start.
    import click

    from straggler.cli.commands import Group, sentence_of

    version = click.Option(
        ["--version"], help="show the version", is_flag=True, is_eager=True, callback=_show_version
    )
    root = Group(ABOUT, EPILOG, "command", COMMANDS, _load, [version])
    try:
        with root.make_context("straggler", list(arguments) or ["--help"]) as context:
            return root.invoke(context)
    except click.exceptions.Exit as end:  # --help and --version
        return end.exit_code if arguments else 2
    except click.ClickException as error:
        raise UsageError(sentence_of(error)) from error


def _load(name: str) -> "click.Command":
    """Return a command, whose module is imported now."""
    refuse_unknown("command", name, COMMANDS)
    module = import_module(f"straggler.cli.{name}")
    command: click.Command = module.make_command(COMMANDS[name])
    return command


def _show_version(context: "click.Context", _option: object, is_asked: bool) -> None:
    if is_asked:
        sys.stdout.write(_version())
        context.exit()


def _version() -> str:
    # Imported here because it takes time, like the commands.
    from importlib.metadata import PackageNotFoundError, version

    try:
        found = version("straggler")
    except PackageNotFoundError:
        found = "(a checkout that is not installed)"
    return f"straggler {found}\n"


def _explain_missing(words: Sequence[str], error: ModuleNotFoundError) -> int:
    """Refuse a command and name all its extras; help and version need none."""
    if words and words[0] == "--version":
        sys.stdout.write(_version())
    elif not words or words[0] in ("-h", "--help"):
        listed = "\n".join(f"  {name:11}  {summary}" for name, summary in COMMANDS.items())
        sys.stdout.write(
            f"Usage: straggler [OPTIONS] COMMAND ...\n\n  {ABOUT}\n\nCommands:\n{listed}\n\n"
            f"{EPILOG}\nmissing packages: {installation(('spark', 'sim', 'test'))}\n"
        )
    else:
        extras = ("sim", *EXTRAS.get(words[0], ()))
        return _refuse(f"this command {describe_missing(error, extras)}", 2)
    return 0 if words else 2


def _refuse(sentence: str, code: int) -> int:
    sys.stderr.write(format_error(sentence))
    return code


if __name__ == "__main__":
    sys.exit(main())
