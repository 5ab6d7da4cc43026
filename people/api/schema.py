"""What docs/openapi.yaml says of an operation: made from the same classes that read requests and write answers."""

from collections.abc import Callable, Iterable
from typing import Any, Final

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema, extend_schema_serializer
from rest_framework import serializers

from people.api.problems import CODES, MEDIA_TYPE
from people.permissions import may_review

ALWAYS: Final = (
    "malformed", "invalid", "unauthenticated", "not_for_this_token", "not_found", "too_many_requests",
    "trail_unavailable",
)  # fmt: skip
WITH_BODY: Final = ("body_too_large", "unsupported_media_type")


def name_of(shown: type[Any]) -> str:
    """What the description calls it."""
    return shown.__name__.removesuffix("Shown")


def provider_only_is_optional(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Say of fields that a tenant's people do not get that they may be missing."""
    for shown in _with_those_below(Shown):
        described = result["components"]["schemas"].get(name_of(shown))
        if described is not None and shown.provider_only:
            described["required"] = [name for name in described["required"] if name not in shown.provider_only]
    return result


def _with_those_below(shown: type["Shown"]) -> list[type["Shown"]]:
    return [shown, *(one for below in shown.__subclasses__() for one in _with_those_below(below))]


class TokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """How a token is sent."""

    target_class = "people.authentication.RecordedTokenAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        """A header."""
        said = "`Token ` and a token from the page *API tokens*."
        return {"type": "apiKey", "in": "header", "name": "Authorization", "description": said}


class Part(serializers.Serializer[Any]):
    """What is answered, or a part of it; the description calls it as the class is called, without “Shown”."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.Meta = type("Meta", (), {"ref_name": name_of(cls)})  # type: ignore[attr-defined]


class Where(Part):
    """One error of several."""

    where = serializers.CharField()
    detail = serializers.CharField()


class ProblemShown(Part):
    """What every refusal looks like."""

    status = serializers.IntegerField()
    code = serializers.CharField(help_text="For programs; docs/api.md lists them.")
    title = serializers.CharField()
    detail = serializers.CharField(help_text="What happened, for people.")
    where = serializers.CharField(help_text="The field, header or parameter; else method and address.")
    mend = serializers.CharField(help_text="How to mend it.")
    errors = Where(many=True)  # type: ignore[assignment]  # a field of ours has a name of DRF's
    request_id = serializers.CharField(
        help_text="By which operators find it in the trail and in the log; empty when nothing looked at it."
    )
    rule = serializers.CharField(required=False, help_text="Which rule of the fabric refused, where one did.")


class Shown(Part):
    """What a resource answers. Fields in `provider_only` are left out for tenants' people."""

    provider_only: tuple[str, ...] = ()

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        """The fields that whoever asks may see; all of them where nobody asks, for the schema."""
        fields = super().get_fields()
        person = self.context.get("person")
        if person is not None and not may_review(person):
            fields = {name: field for name, field in fields.items() if name not in self.provider_only}
        return fields


def operation(
    *,
    shows: type[serializers.Serializer[Any]] | None,
    summary: str,
    takes: type[serializers.Serializer[Any]] | None = None,
    status: int = 200,
    lists: bool = False,
    filters: type[Any] | None = None,
    refuses: Iterable[str] = (),
    edits: bool = False,
    once: bool = False,
    accepts: bool = False,
) -> Callable[[Any], Any]:
    """Describe an operation: what it takes, shows and refuses.

    `lists`: a page of them. `edits`: needs If-Match. `once`: takes an Idempotency-Key. `refuses`: codes beside those
    that every operation has. `accepts`: also answers 202 with the same, where something goes on by itself.
    """
    is_reading = takes is None and not edits and not once and status == 200
    codes = [*ALWAYS, *refuses, *(WITH_BODY if takes is not None or once else ())]
    codes += ["precondition_required", "precondition_failed"] if edits else []
    codes += ["key_reused"] if once else []
    codes += ["bad_cursor"] if lists else []
    by_status: dict[int, list[str]] = {}
    for code in codes:
        by_status.setdefault(CODES[code].status, []).append(code)
    answers: dict[Any, Any] = {status: _page_of(shows) if lists and shows is not None else shows}
    if accepts:
        answers[202] = answers[status]
    if is_reading:
        answers[304] = OpenApiResponse(description="Nothing has changed since (If-None-Match).")
    for number, names in sorted(by_status.items()):
        said = "; ".join(f"{name}: {CODES[name].title}" for name in names)
        answers[number, MEDIA_TYPE] = OpenApiResponse(ProblemShown, description=said)
    parameters = []
    if lists:
        parameters += [
            OpenApiParameter("cursor", str, description="From “next_cursor” of the page before."),
            OpenApiParameter("limit", {"type": "integer", "minimum": 1, "maximum": 200, "default": 50}),
        ]
    parameters += _of_filters(filters)
    if edits:
        parameters.append(_header("If-Match", "The ETag of what is edited.", required=True))
    if once:
        parameters.append(_header("Idempotency-Key", "The same request with the same key is done once a day."))
    return extend_schema(summary=summary, request=takes, responses=answers, parameters=parameters)


def _header(name: str, description: str, *, required: bool = False) -> OpenApiParameter:
    return OpenApiParameter(name, str, OpenApiParameter.HEADER, required=required, description=description)


def _page_of(shows: type[serializers.Serializer[Any]]) -> type[serializers.Serializer[Any]]:
    fields = {
        "items": shows(many=True),
        "next_cursor": serializers.CharField(allow_null=True),
        "__doc__": "One page.",
        "__module__": shows.__module__,
    }
    made = type(f"{shows.__name__.removesuffix('Shown')}Page", (Part,), fields)
    return extend_schema_serializer(many=False)(made)


def _of_filters(filters: type[Any] | None) -> list[OpenApiParameter]:
    parameters = []
    for name, one in (filters.base_filters if filters is not None else {}).items():
        kind: Any = {"BooleanFilter": bool, "IsoDateTimeFilter": OpenApiTypes.DATETIME}.get(type(one).__name__, str)
        choices = [key for key, _ in one.extra.get("choices", ())]
        parameters.append(
            OpenApiParameter(name, kind, enum=choices or None, description=str(one.extra.get("help_text", "")))
        )
    return parameters
