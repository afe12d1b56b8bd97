"""Actions: every change that people make to a cluster. Declared once, run by one runner, audited exactly once.

Owns the declaration (`declaration.py`), the arguments and their form (`arguments.py`), the registry (`registry.py`),
the runner (`runner.py`) and the runs under way (`runs.py`, `models.py`). Pages call `preview` and `run` of the runner;
REST, Celery and command line call the same two functions with the same names and values.

An action is one file in its subject's package, named as its verb, that ends with a `DECLARATION`; the subject's
AppConfig registers it. The contract of its functions:

- `preview(cluster, arguments)` changes nothing and asks what is there now: a `Preview` with one `Change` per item (a
  broker, a name server) that says before and after. Raises ValidationError for an argument that does not fit what is
  there, ActionRefused for a rule, ActionUnavailable where nothing could be learned.
- `carry_out(cluster, arguments, preview)` yields one `ItemOutcome` per `Change`, in any order. An item that fails is an
  outcome with its reason; one whose answer was lost is `unknown`. It ends within `runs.ABANDONED_AFTER`.
- `undo(arguments, outcomes)` names the action that takes it back, or None.

Invariants: permission, validation, preview and confirmation are checked in `run`, whatever a page has shown before.
Every call of `run` writes one audit entry: done, partial, failed, unknown or refused. One run at a time changes a
subject of a cluster. The same key by the same person never carries anything out twice. A preview whose fingerprint no
longer holds refuses the run.
"""
