"""Room ``grouping`` on the command line (docs/grouping.md)."""
