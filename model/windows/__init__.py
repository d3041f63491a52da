"""Parts shared by rooms that answer windows early and correct them later (docs/slack.md)."""
