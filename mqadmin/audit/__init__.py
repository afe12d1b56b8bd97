"""Who changed what, with before and after; refusals too."""
