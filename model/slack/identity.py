"""Which fields tell one step of room ``slack`` from another, for ``model.checking.diff``."""

from collections.abc import Mapping

IDENTITY: Mapping[str, tuple[str, ...]] = {
    "result": ("task", "start_us", "key"),
    "late": ("task", "start_us", "key", "source_id"),
    "judged": ("task", "order"),
    "rejected": ("task", "seq"),
    "progress": ("task", "batch"),
    "correction": ("task", "batch"),
    "cleared": ("task", "start_us", "key", "source_id"),
    "revision": ("task", "start_us", "key", "revision"),
    "correlation": ("task", "start_us", "key", "revision"),
    "final": ("task", "start_us", "key"),
}
"""Kind of step: its identifying fields. What they do not cover is compared."""
