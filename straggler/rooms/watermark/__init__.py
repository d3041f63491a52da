"""Room ``watermark`` on the command line (docs/watermark.md)."""
