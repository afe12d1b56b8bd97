"""An index that serves a list sorted by its largest figures first, the unknown last, on every database."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.backends.ddl_references import Statement
from django.db.models.expressions import F, OrderBy


class NullsLastIndex(models.Index):
    """SQLite refuses NULLS LAST in an index; but its DESC has the nulls last by itself."""

    def create_sql(
        self, model: type[models.Model], schema_editor: BaseDatabaseSchemaEditor, using: str = "", **kwargs: Any
    ) -> Statement:
        if schema_editor.connection.vendor != "sqlite":
            return super().create_sql(model, schema_editor, using, **kwargs)
        plain = models.Index(*map(_without_nulls, self.expressions), name=self.name, condition=self.condition)
        return plain.create_sql(model, schema_editor, using, **kwargs)


def _without_nulls(expression: Any) -> Any:
    return OrderBy(expression.expression, descending=True) if isinstance(expression, OrderBy) else expression


def largest_first(column: str) -> OrderBy:
    """Orders by the column, descending, rows whose figure is not known last."""
    return F(column).desc(nulls_last=True)
