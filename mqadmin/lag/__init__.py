"""How far groups are behind, and what that means."""
