"""Room ``watermark``, the reference: the wait follows the disorder (docs/watermark.md)."""

from model.watermark.run import make_system, run

__all__ = ["make_system", "run"]
