"""Reference models: pure, untimed, the statement of what must be true."""
