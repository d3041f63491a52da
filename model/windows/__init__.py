"""What rooms share that answer windows early and correct them later (docs/slack.md)."""
