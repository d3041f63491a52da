"""Ctrl-C: noticed even inside libraries, and known to commands that keep partial results."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_came: list[int] = []


def came() -> bool:
    """Return whether Ctrl-C came in the block of :func:`report_interrupts`."""
    return bool(_came)


@contextmanager
def report_interrupts() -> Iterator[None]:
    """Raise KeyboardInterrupt at the end of the block if Ctrl-C came in it.

    Libraries that call Python from C, as pandas does to read a file, turn the interrupt into an
    error of their own. A parent that ignores interrupts, such as nohup, passes that on to its
    children; within the block they are heard nevertheless.
    """
    _came.clear()
    usual = signal.default_int_handler
    main_thread = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGINT)
    if not main_thread or before not in (usual, signal.SIG_IGN):
        yield  # signals reach the main thread only, or another handler is installed
        return

    def remember(number: int, frame: FrameType | None) -> None:
        _came.append(number)
        usual(number, frame)

    signal.signal(signal.SIGINT, remember)
    try:
        yield
    except (Exception, SystemExit) as error:
        if _came:
            raise KeyboardInterrupt from error
        raise
    else:
        if _came:
            raise KeyboardInterrupt
    finally:
        signal.signal(signal.SIGINT, before)
