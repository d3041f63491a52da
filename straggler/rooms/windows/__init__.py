"""What rooms ``slack`` and ``watermark`` share on the command line."""
