"""What docs/openapi.yaml says of an operation: made from the same classes that read requests and write answers."""

from collections.abc import Callable, Iterable
from typing import Any, Final

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers

from people.api.problems import CODES, MEDIA_TYPE
from people.permissions import may_review

ALWAYS: Final = ("malformed", "unauthenticated", "not_for_this_token", "not_found", "trail_unavailable")
WITH_BODY: Final = ("body_too_large", "unsupported_media_type")


class TokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """How a token is sent."""

    target_class = "people.authentication.RecordedTokenAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        """A header."""
        said = "`Token ` and a token from the page *API tokens*."
        return {"type": "apiKey", "in": "header", "name": "Authorization", "description": said}


class Where(serializers.Serializer[Any]):
    """One error of several."""

    where = serializers.CharField()
    detail = serializers.CharField()


class ProblemShown(serializers.Serializer[Any]):
    """What every refusal looks like."""

    status = serializers.IntegerField()
    code = serializers.CharField(help_text="For programs; docs/api.md lists them.")
    title = serializers.CharField()
    detail = serializers.CharField(help_text="What happened, for people.")
    where = serializers.CharField(help_text="The field, header or parameter; else method and address.")
    mend = serializers.CharField(help_text="How to mend it.")
    errors = Where(many=True)
    request_id = serializers.CharField(help_text="By which operators find it in the trail and in the log.")
    rule = serializers.CharField(required=False, help_text="Which rule of the fabric refused, where one did.")

    class Meta:
        ref_name = "Problem"


class Shown(serializers.Serializer[Any]):
    """What a resource answers. Fields in `provider_only` are left out for tenants' people."""

    provider_only: tuple[str, ...] = ()

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        """The fields that whoever asks may see; all of them where nobody asks, for the schema."""
        fields = super().get_fields()
        user = getattr(self.context.get("request"), "user", None)
        if user is not None and not may_review(user):
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
) -> Callable[[Any], Any]:
    """Describe an operation: what it takes, shows and refuses.

    `lists`: a page of them. `edits`: needs If-Match. `once`: takes an Idempotency-Key. `refuses`: codes beside those
    that every operation has.
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
    return extend_schema(  # type: ignore[no-any-return]
        summary=summary, request=takes, responses=answers, parameters=parameters
    )


def _header(name: str, description: str, *, required: bool = False) -> OpenApiParameter:
    return OpenApiParameter(name, str, OpenApiParameter.HEADER, required=required, description=description)


def _page_of(shows: type[serializers.Serializer[Any]]) -> type[serializers.Serializer[Any]]:
    fields = {
        "items": shows(many=True),
        "next_cursor": serializers.CharField(allow_null=True),
        "__doc__": "One page.",
        "__module__": shows.__module__,
    }
    return type(f"{shows.__name__.removesuffix('Shown')}Page", (serializers.Serializer,), fields)


def _of_filters(filters: type[Any] | None) -> list[OpenApiParameter]:
    parameters = []
    for name, one in (filters.base_filters if filters is not None else {}).items():
        kind: Any = {"BooleanFilter": bool, "IsoDateTimeFilter": OpenApiTypes.DATETIME}.get(type(one).__name__, str)
        choices = [key for key, _ in one.extra.get("choices", ())]
        parameters.append(
            OpenApiParameter(name, kind, enum=choices or None, description=str(one.extra.get("help_text", "")))
        )
    return parameters
