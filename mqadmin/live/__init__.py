"""What changed, told to open pages."""
