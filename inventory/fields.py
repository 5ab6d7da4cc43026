"""GUIDField: a GUID in a column, always in its one spelling."""

import json
from typing import TYPE_CHECKING, Any

from django.core.exceptions import ValidationError
from django.db import models

from subnet.errors import InvalidGUID
from subnet.guid import GUID

if TYPE_CHECKING:
    _Text = models.CharField[Any, Any]
    _Lookup = models.Lookup[Any]
else:
    _Text = models.CharField  # at run time Django's classes take no type arguments
    _Lookup = models.Lookup


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
        return None if value is None else str(value if type(value) is GUID else GUID(str(value)))


@GUIDField.register_lookup
class Among(_Lookup):
    """`guid__among=[…]`: as `__in`, but all of them are one value of the statement.

    A boot storm asks for hundreds of GUIDs at a time; to write each into the statement cost more than to find them.
    """

    lookup_name = "among"
    prepare_rhs = False

    def get_db_prep_lookup(self, value: Any, connection: Any) -> Any:
        """The GUIDs as one text; nothing that could end it is in a GUID."""
        guids = [str(guid if type(guid) is GUID else GUID(str(guid))) for guid in value]
        return "%s", ["{" + ",".join(guids) + "}" if connection.vendor == "postgresql" else json.dumps(guids)]

    def as_sql(self, compiler: Any, connection: Any) -> Any:
        """On SQLite a JSON list, on PostgreSQL an array."""
        column, of_column = self.process_lhs(compiler, connection)
        _, values = self.get_db_prep_lookup(self.rhs, connection)
        if connection.vendor == "postgresql":
            return f"{column} = ANY(%s::varchar[])", [*of_column, *values]
        return f"{column} IN (SELECT value FROM json_each(%s))", [*of_column, *values]  # noqa: S608  a column
