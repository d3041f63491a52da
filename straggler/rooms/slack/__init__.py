"""Room ``slack`` on the command line (docs/slack.md)."""
