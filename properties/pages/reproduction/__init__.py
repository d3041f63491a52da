"""docs/reproduction.md: what was published, claim by claim, and what came out here."""
