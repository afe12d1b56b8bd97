"""API tokens: what a program shows instead of a person's session, narrower than the person's own rights."""
