"""What timed rooms share that answer windows early and correct them later."""
