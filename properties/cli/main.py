"""The ``straggler`` command line.

Exit codes: 0 holds, 1 broken, 2 usage or environment, 3 undetermined, 130 interrupted. Every error
is one sentence on stderr.
"""

import argparse
import io
import logging
import os
import re
import signal
import sys
import threading
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from types import FrameType
from typing import Any, NoReturn

from model.vocabulary.settings import nearest
from properties.cli.outputs import refuse_overwriting
from properties.errors import UsageError

COMMANDS = ("diff", "explore", "sim", "sweep", "report", "replay", "errata", "script", "package")
"""Command ``x`` is the module ``properties.cli.x``."""
OPTIONS = ("-h", "--help", "--version")
"""Options without a command."""
TRACEBACK_VARIABLE = "STRAGGLER_TRACEBACK"

EPILOG = """\
examples:
  straggler diff all                               every room on its default inputs
  straggler diff slack --input flights             one recording
  straggler diff slack --input trips.csv --event-time picked_up --value fare \\
      --time-unit iso --window 1h --slide 5min     your own file
  straggler diff slack --system mypackage:make     your implementation instead of ours
  straggler explore slack                          every behaviour of a small model
  straggler sim slack --seed 7 --plot run.svg      one timed run
  straggler sweep                                  published experiments, simulated
  straggler report                                 results of sweeps as one page
  straggler replay counterexamples/slack-1a2b.json
  straggler errata                                 published rules that do not hold
  straggler script explain *.script                the plan of sensor scripts
  straggler package                                what workers of a cluster import

exit codes: 0 holds, 1 broken, 2 usage or environment, 3 undetermined, 130 interrupted
"""


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one sentence, if possible with a suggestion."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # A negative duration is a value that can be refused; no option begins like one.
        self._negative_number_matcher = re.compile(r"-\.?\d")

    def error(self, message: str) -> NoReturn:
        """Raise :class:`UsageError`."""
        raise UsageError(message)


def make_parser(names: Sequence[str] = COMMANDS) -> Parser:
    """Return a parser of the given commands with their options."""
    parser = Parser(
        prog="straggler",
        description="Reference models and property tests for late data and slow workers, on Spark.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"straggler {_version()}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=Parser)
    for name in names:
        # Imported here because it takes a second, and Ctrl-C has to work from the start.
        command = import_module(f"properties.cli.{name}")
        sub = commands.add_parser(
            name,
            help=command.SUMMARY,
            description=command.SUMMARY,
            epilog=command.EXAMPLES,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        command.add_options(sub)
        sub.set_defaults(run=command.run, parser=sub)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    # Libraries log errors with a stack trace before they raise them; one sentence is enough.
    logged_before = logging.root.manager.disable
    logging.disable()
    _escape_output()
    try:
        with _report_interrupts():
            return int(_run(sys.argv[1:] if arguments is None else list(arguments)))
    except UsageError as error:
        return _refuse(str(error), 2)
    except KeyboardInterrupt:
        return _refuse("interrupted", 130)
    except BrokenPipeError:
        # The reader of the output has closed it, so nothing may be written, not even at exit.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError):  # a stream that is no file has no number
                os.dup2(nowhere, stream.fileno())
        return 0
    except Exception as error:  # a bug, or a full disk: still one sentence
        if os.environ.get(TRACEBACK_VARIABLE):
            traceback.print_exc()
        what = f"{type(error).__name__}: {error}"
        hint = f"set {TRACEBACK_VARIABLE}=1 to see where"
        return _refuse(f"unexpected error {what}; {hint}", 2)
    finally:
        logging.disable(logged_before)


@contextmanager
def _report_interrupts() -> Iterator[None]:
    """Raise KeyboardInterrupt at the end of the block if Ctrl-C came in it.

    Libraries that call Python from C, as pandas does to read a file, turn the interrupt into an
    error of their own. A parent that ignores interrupts, such as nohup, passes that on to its
    children; within the block they are heard nevertheless.
    """
    usual = signal.default_int_handler
    main_thread = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGINT)
    if not main_thread or before not in (usual, signal.SIG_IGN):
        yield  # signals reach the main thread only, or another handler is installed
        return
    came: list[int] = []

    def remember(number: int, frame: FrameType | None) -> None:
        came.append(number)
        usual(number, frame)

    signal.signal(signal.SIGINT, remember)
    try:
        yield
    except (Exception, SystemExit) as error:
        if came:
            raise KeyboardInterrupt from error
        raise
    else:
        if came:
            raise KeyboardInterrupt
    finally:
        signal.signal(signal.SIGINT, before)


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
    if not arguments:
        make_parser().print_help()
        return 2
    parser = make_parser(_named(arguments[0]))
    args, unknown = parser.parse_known_args(arguments)
    if unknown:
        hint = nearest(unknown[0].partition("=")[0], _options(args.parser, args))
        raise UsageError(f"unknown argument {unknown[0]!r}{hint}")
    refuse_overwriting(args)
    code: int = args.run(args)
    return code


def _options(parser: argparse.ArgumentParser, args: argparse.Namespace) -> list[str]:
    """Return the options of a command, or of its chosen action."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return _options(action.choices[getattr(args, action.dest)], args)
    return [text for action in parser._actions for text in action.option_strings]


def _named(word: str) -> Sequence[str]:
    """Return the command of this name, or all commands for an option of ``straggler`` itself."""
    if word in COMMANDS:
        return (word,)
    if not word.startswith("-"):
        known = ", ".join(COMMANDS)
        raise UsageError(f"there is no command {word!r}, only {known}{nearest(word, COMMANDS)}")
    if word not in OPTIONS:
        raise UsageError(f"unknown argument {word!r}{nearest(word, OPTIONS)}")
    return COMMANDS


def _refuse(sentence: str, code: int) -> int:
    sentence = " ".join(sentence.split())
    sys.stderr.write(f"straggler: {sentence}{'' if sentence.endswith(('?', '.')) else '.'}\n")
    return code


def _version() -> str:
    # Imported here because it takes time, like the commands.
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("straggler")
    except PackageNotFoundError:
        return "(a checkout that is not installed)"


if __name__ == "__main__":
    sys.exit(main())
