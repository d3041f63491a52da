"""Benchmarks, measured side by side with the usual alternatives: `make bench`."""


class CannotMeasure(Exception):  # noqa: N818 (not a bug)
    """A benchmark cannot run on this machine; the message is one sentence with the reason."""
