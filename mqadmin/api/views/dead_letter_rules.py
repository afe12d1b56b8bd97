"""`…/dead-letter-rules`: made, paused and deleted by `make_rule`, `set_rule_running`, `delete_rule`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mqadmin.api.listing import ListResource, described
from mqadmin.api.rows import Rows, RowsInMemory
from mqadmin.api.serializers.dead_letter_rules import RuleSerializer
from mqadmin.clusters import selectors
from mqadmin.deadletter_rules import selectors as rule_selectors
from mqadmin.deadletter_rules.selectors import RuleLine


@described("list_dead_letter_rules", "List rules for dead letters")
class DeadLetterRules(ListResource):
    """Rules of a cluster by name, with what each did last; 100 at most."""

    row = RuleSerializer

    def rows(self, query: Mapping[str, Any], **names: str) -> Rows[RuleLine]:
        found = rule_selectors.rules(selectors.cluster_head(names["cluster"]))
        return RowsInMemory(found, lambda line: [line.rule.name])
