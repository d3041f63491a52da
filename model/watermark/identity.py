"""Which fields tell one step of room ``watermark`` from another, for ``model.checking.diff``."""

from collections.abc import Mapping

IDENTITY: Mapping[str, tuple[str, ...]] = {
    "clock": ("task", "seq"),
    "result": ("task", "start_us", "key"),
    "late": ("task", "start_us", "key", "source_id"),
    "rejected": ("task", "seq"),
    "correction": ("task", "batch"),
    "cleared": ("task", "start_us", "key", "source_id"),
    "revision": ("task", "start_us", "key", "revision"),
    "final": ("task", "start_us", "key"),
}
"""Kind of step: its identifying fields. What they do not cover is compared."""
