"""Parts of the command line that rooms ``slack`` and ``watermark`` share."""
