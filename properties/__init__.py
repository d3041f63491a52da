"""Promises checked on all three producers, and the `straggler` command line."""
