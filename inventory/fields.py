"""GUIDField: a GUID in a column, always in its one spelling."""

from typing import TYPE_CHECKING, Any

from django.core.exceptions import ValidationError
from django.db import models

from subnet.errors import InvalidGUID
from subnet.guid import GUID

if TYPE_CHECKING:
    _Text = models.CharField[Any, Any]
else:
    _Text = models.CharField  # at run time Django's fields take no type arguments


class GUIDField(_Text):
    """Text, because a 64-bit unsigned number does not fit a signed bigint and JSON loses its digits."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs["max_length"] = 18
        super().__init__(*args, **kwargs)

    def deconstruct(self) -> Any:
        name, path, args, kwargs = super().deconstruct()
        kwargs.pop("max_length", None)
        return name, path, args, kwargs

    def from_db_value(self, value: str | None, expression: object, connection: object) -> GUID | None:
        return None if value is None else GUID(value)

    def to_python(self, value: Any) -> GUID | None:
        if value is None or isinstance(value, GUID):
            return value
        try:
            return GUID(str(value))
        except InvalidGUID as error:
            raise ValidationError(str(error), code="invalid_guid") from error

    def get_prep_value(self, value: Any) -> str | None:
        return None if value is None else str(GUID(str(value)))
