"""Body: what a request may carry, field by field. A field nobody asked for is refused: it may be a misspelt one."""

import unicodedata
from typing import Any, Final

from rest_framework import serializers
from rest_framework.request import Request

# Nothing a person sees: controls, what turns the direction of writing, what joins or hides letters.
_UNSEEN: Final = frozenset({"Cc", "Cf", "Co", "Cs", "Zl", "Zp"})
LONGEST_REASON: Final = 1000


class StrictText(serializers.CharField):
    """Text as a person reads it: a number is no text, and nothing in it is invisible."""

    def to_internal_value(self, data: Any) -> str:
        """The text. Raises ValidationError."""
        if not isinstance(data, str):
            raise serializers.ValidationError("Give a text, in quotes. A number loses digits on its way.")
        if any(unicodedata.category(letter) in _UNSEEN and letter not in "\n\t" for letter in data):
            raise serializers.ValidationError("There is a character in it that nobody sees. Leave it out.")
        return str(super().to_internal_value(data))


class StrictFlag(serializers.BooleanField):
    """true or false; not "yes", and not 1."""

    def to_internal_value(self, data: Any) -> bool:
        """The flag. Raises ValidationError."""
        if not isinstance(data, bool):
            raise serializers.ValidationError("Give true or false.")
        return data


class StrictNumber(serializers.IntegerField):
    """A whole number, and no text that looks like one."""

    def to_internal_value(self, data: Any) -> int:
        """The number. Raises ValidationError."""
        if isinstance(data, bool) or not isinstance(data, int):
            raise serializers.ValidationError("Give a whole number, without quotes.")
        return int(super().to_internal_value(data))


class Body(serializers.Serializer[Any]):
    """Fields of a request's body; other ones are refused."""

    def to_internal_value(self, data: Any) -> Any:
        """The values. Raises ValidationError."""
        if isinstance(data, dict):
            unknown = sorted(set(data) - set(self.fields))
            if unknown:
                known = ", ".join(self.fields) or "none"
                raise serializers.ValidationError(
                    {name[:40]: [f"There is no such field. It takes {known}."] for name in unknown}
                )
        return super().to_internal_value(data)

    @classmethod
    def read(cls, request: Request) -> dict[str, Any]:
        """What the request carries. Raises ValidationError."""
        body = cls(data=request.data)
        body.is_valid(raise_exception=True)
        values: dict[str, Any] = body.validated_data
        return values


class Reason(StrictText):
    """Why somebody does it, for the trail."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(required=False, allow_blank=True, default="", max_length=LONGEST_REASON, **kwargs)
