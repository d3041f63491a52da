"""Parts of rooms ``slack`` and ``watermark`` on the command line and in the tests."""
