"""Benchmarks, measured side by side with the usual alternatives: `make bench`."""


class CannotMeasure(Exception):  # noqa: N818 (not a bug)
    """This machine cannot run a benchmark; the message is one sentence with the reason."""
