"""Runs of actions: checked, previewed, carried out once, audited exactly once.

Owns the runner (`runner.py`), runs on many subjects at once (`many.py`), and the runs under way (`runs.py`,
`models.py`). Pages call `preview` and `run` of the runner; REST, Celery and command line call the same two functions
with the same names and values. What an action is, and what its functions promise, `mqadmin/actions/` says; that knows
nothing of permissions, runs and the audit, so who may what (`people`) and the audit can have actions of their own.

Invariants: permission, validation, preview and confirmation are checked in `run`, whatever a page has shown before.
Every call of `run` writes one audit entry: done, partial, failed, unknown or refused. One run at a time changes a
subject of a cluster. The same key by the same person never carries anything out twice. A preview whose fingerprint no
longer holds refuses the run.
"""
