"""What happened, one numbered event each: for scripts that follow it live, and for those that come back."""
