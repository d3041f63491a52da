"""What rooms that answer windows early have in common on the command line and in the tests."""
