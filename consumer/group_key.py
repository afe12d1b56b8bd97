"""How a group on one of the project's clusters is written: "billing", or "billing@payments" on the cluster "payments".

No name of a group or cluster may have an "@", so the key says both. Registry, supervision and commands use it.
"""

from __future__ import annotations

# What `cluster=` and the rows say of the cluster behind MQADMIN_NAMESRV.
DEFAULT_CLUSTER = ""


def group_key(group: str, cluster: str) -> str:
    return group if cluster == DEFAULT_CLUSTER else f"{group}@{cluster}"
