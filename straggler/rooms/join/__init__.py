"""Room ``join`` on the command line (docs/join.md)."""
