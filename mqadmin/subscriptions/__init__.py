"""What the members of a group say of themselves, whether they want the same, and what it causes where they don't."""
