"""Whose a topic or a group is: owner, description, runbook. Known to the console alone, never sent to a broker."""
