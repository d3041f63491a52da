"""Python processes of Spark that are forked from one with all imports, instead of started anew.

Each start of a query starts two processes, and each of them imports for half a second, which is
most of what a query of a test costs. A *launcher* stands in for Python here: it hands its
arguments, environment and open files to the *server*, which forks; then it waits for the fork to
end. Without a server, or asked for anything but a module, the launcher becomes Python itself.

A fork first calls the function, pickled, that its environment names as :data:`FIRST`.
"""

import base64
import gc
import importlib
import json
import os
import pickle
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import spark_impl

PRELOADED = (
    "pandas",
    "pyarrow.parquet",
    "pyspark.sql.streaming.proto.StateMessage_pb2",
    "pyspark.sql.streaming.stateful_processor_util",
    "pyspark.sql.worker.create_data_source",
    "pyspark.sql.worker.lookup_data_sources",
    "pyspark.sql.worker.plan_data_source_read",
    "pyspark.worker",
    "spark_impl.grouping",
    "spark_impl.join",
    "spark_impl.script",
    "spark_impl.slack",
    "spark_impl.watermark",
)
"""Modules that are imported before any fork; none of those that Spark runs with ``-m``."""
FIRST = "STRAGGLER_FIRST"
"""Variable of the environment with a function that a fork calls before its module runs."""
LAUNCHER = """\
#!{python} -IS
import json, os, signal, socket, sys
def become_python():
    os.execv({python!r}, [{python!r}, *sys.argv[1:]])
if sys.argv[1:2] != ["-m"]:
    become_python()
server = socket.socket(socket.AF_UNIX)
try:
    server.connect({address!r})
except OSError:
    become_python()
asked = json.dumps([sys.argv[2:], dict(os.environ), os.getcwd()]).encode()
socket.send_fds(server, [len(asked).to_bytes(4, "big")], [0, 1, 2])
server.sendall(asked)
answers = server.makefile()
pid = int(answers.readline())
for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
    signal.signal(number, lambda number, frame: os.kill(pid, number))
sys.exit(int(answers.readline() or 1))
"""


@contextmanager
def forking() -> Iterator[Path]:
    """Run a server; yield its launcher.

    Its socket lies in the folder of temporary files, or in ``/tmp`` if that has a long name: the
    address of a socket has room for about a hundred bytes.
    """
    is_short = len(os.fsencode(tempfile.gettempdir())) < 64
    with tempfile.TemporaryDirectory(
        prefix="straggler-forks-", dir=None if is_short else "/tmp"
    ) as folder:
        address, launcher = f"{folder}/socket", Path(folder, "python")
        launcher.write_text(LAUNCHER.format(python=sys.executable, address=address), "utf-8")
        launcher.chmod(0o755)
        code = f"from {__name__} import serve; serve({address!r})"
        # Spark starts its Python processes with this seed of hashes, too.
        ours = str(Path(spark_impl.__file__ or "").parents[1])  # perhaps a copy with a planted bug
        path = os.pathsep.join(filter(None, [ours, *sys.path]))
        places = {"PYTHONPATH": path, "PYTHONHASHSEED": "0"}
        with subprocess.Popen(
            [sys.executable, "-P", "-c", code],
            env={**os.environ, **places},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # an interrupt is for the tests alone
        ) as server:
            assert server.stdout is not None
            assert server.stdout.readline() == b"ready\n"
            yield launcher
            server.communicate()  # the end of its input ends it


def serve(address: str) -> None:
    """Fork for every launcher that asks, until the standard input ends."""
    for name in PRELOADED:
        importlib.import_module(name)
    gc.freeze()
    signal.signal(signal.SIGCHLD, _bury)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(address)
        listening.listen(128)
        print("ready", flush=True)  # noqa: T201 (to the process that waits)
        while sys.stdin not in select.select([sys.stdin, listening], [], [])[0]:
            asking, _ = listening.accept()
            if os.fork() == 0:
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                listening.close()
                _answer(asking)
            asking.close()


def _bury(_number: int, _frame: object) -> None:
    """Take note of the forks that have ended; their processor time counts for the server."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _answer(asking: socket.socket) -> None:
    """Be the process that a launcher asks for, and tell it the exit code at the end."""
    header, files, _flags, _sender = socket.recv_fds(asking, 4, 3)
    with asking.makefile("rb") as stream:
        arguments, environment, folder = json.loads(stream.read(int.from_bytes(header, "big")))
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    asking.sendall(b"%d\n" % os.getpid())
    os.register_at_fork(after_in_child=asking.close)  # the launcher waits for this process alone
    code = _run(arguments)
    with suppress(OSError):  # the launcher was killed
        asking.sendall(b"%d\n" % code)
    os._exit(code)


def _run(arguments: list[str]) -> int:
    """Run a module as ``python -m`` does; return its exit code."""
    sys.argv = arguments
    given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    sys.path += [path for path in given if path and path not in sys.path]
    try:
        if FIRST in os.environ:
            pickle.loads(base64.b64decode(os.environ[FIRST]))()
        runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)
    except SystemExit as left:
        return left.code if isinstance(left.code, int) else int(left.code is not None)
    except BaseException:
        traceback.print_exc()
        return 1
    finally:
        with suppress(OSError, ValueError):  # the module has closed it
            sys.stdout.flush()
    return 0
