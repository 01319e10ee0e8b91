"""The base of every record that crosses a process or is written to disk."""

from __future__ import annotations

from typing import Any, Self

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel
from pydantic.fields import FieldInfo


class Record(BaseModel):
    """Frozen, strict data: unknown keys refused, camelCase in JSON, either spelling read."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        allow_inf_nan=False,
        alias_generator=to_camel,
        populate_by_name=True,
    )

    def to_json(self) -> dict[str, Any]:
        """Give the JSON form with camelCase keys."""
        return self.model_dump(mode="json", by_alias=True)

    def updated(self, **changes: Any) -> Self:
        """Copy with changes, validated again (pydantic's own `model_copy` does not)."""
        return type(self).model_validate({**self.model_dump(), **changes})


def explain(error: ValidationError, model: type[BaseModel]) -> str:
    """Put a validation error on one line: each key, what is wrong, and its allowed range."""
    parts = []
    for item in error.errors():
        path = ".".join(map(str, item["loc"])) or "value"
        if item["type"] == "extra_forbidden":
            parts.append(f"{path}: unknown key")
            continue
        shown = repr(item.get("input"))
        told = item["type"] not in ("name", "secret") and len(shown) <= 60
        shown = f", got {shown}" if told else ""
        message = item["msg"].removeprefix("Value error, ")
        parts.append(f"{path}: {message}{shown}{_allowed(model, item['loc'])}")
    return "; ".join(parts)


def to_snake(name: str) -> str:
    """Spell a camelCase field name as the Python attribute."""
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name)


def _allowed(model: type[BaseModel], path: tuple[int | str, ...]) -> str:
    """The range of the field at a path, as ` (allowed 1 to 9)`; empty when it has none."""
    field: FieldInfo | None = None
    at: Any = model
    for part in path:
        if not (isinstance(at, type) and issubclass(at, BaseModel)):
            return ""
        field = at.model_fields.get(to_snake(str(part)))
        at = field.annotation if field else None
    marks = [] if field is None else field.metadata
    low = next((f"{m.ge}" for m in marks if hasattr(m, "ge")), None)
    low = low or next((f"more than {m.gt}" for m in marks if hasattr(m, "gt")), None)
    high = next((f"{m.le}" for m in marks if hasattr(m, "le")), None)
    high = high or next((f"less than {m.lt}" for m in marks if hasattr(m, "lt")), None)
    if low and high:
        return f" (allowed {low} to {high})"
    return f" (allowed {low} and more)" if low else f" (allowed up to {high})" if high else ""
