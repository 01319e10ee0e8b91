"""The base of every record that crosses a process or is written to disk."""

from __future__ import annotations

from typing import Any, Self

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class Record(BaseModel):
    """Frozen, strict data: unknown keys refused, camelCase in JSON, either spelling read."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True
    )

    def to_json(self) -> dict[str, Any]:
        """Give the JSON form with camelCase keys."""
        return self.model_dump(mode="json", by_alias=True)

    def updated(self, **changes: Any) -> Self:
        """Copy with changes, validated again (pydantic's own `model_copy` does not)."""
        return type(self).model_validate({**self.model_dump(), **changes})
