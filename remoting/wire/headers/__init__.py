"""Typed headers: what the extFields of each command mean. One file per subject, named like the processors."""
