"""`system.tables`, which stands beside a system's options and is one of them: a kind has it as its option `tables`."""

from __future__ import annotations

from typing import Final

from pydantic import BaseModel

from dyno.model.study import KindSpec
from dyno.model.table_options import TableOptions

TABLES: Final = "tables"


def tables_of(options: type[BaseModel]) -> type[TableOptions] | None:
    """What the tables of a kind of system take; None of one that has none to lay out."""
    field = options.model_fields.get(TABLES)
    model = None if field is None else field.annotation
    return model if isinstance(model, type) and issubclass(model, TableOptions) else None


def tables_put(spec: KindSpec, tables: TableOptions) -> KindSpec:
    """A system with these tables."""
    return spec.model_copy(update={"options": {**spec.options, TABLES: tables.model_dump(mode="json")}})
