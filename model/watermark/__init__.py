"""Room ``watermark``, the reference: the wait follows the disorder (docs/watermark.md)."""

from model.watermark.machine import MODEL

run = MODEL.run
make_system = MODEL.make_system

__all__ = ["make_system", "run"]
