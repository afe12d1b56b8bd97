"""Actions: every change that people make to a cluster, declared once.

Owns the declaration (`declaration.py`), the arguments and their form (`arguments.py`) and the registry (`registry.py`).
`mqadmin/action_runs/` checks, carries out and audits.

An action is one file in its subject's package, named as its verb, that ends with a `DECLARATION`; what takes it back
may stand beside it. The subject's AppConfig registers it. The contract of its functions:

- `preview(cluster, arguments)` changes nothing and asks what is there now: a `Preview` with one `Change` per item (a
  broker, a name server) that says before and after. Raises ValidationError for an argument that does not fit what is
  there, ActionRefused for a rule, ActionUnavailable where nothing could be learned.
- `carry_out(cluster, arguments, preview)` yields one `ItemOutcome` per `Change`, in any order. An item that fails is an
  outcome with its reason; one whose answer was lost is `unknown`. It ends within `runs.ABANDONED_AFTER`.
- `undo(arguments, outcomes)` names the action that takes it back, or None.
"""
