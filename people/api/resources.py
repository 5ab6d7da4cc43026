"""Resource: the base of every resource. It asks for the scope, takes only what is documented, and names the actor."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, Final

from django.db.models import QuerySet
from django.http import Http404
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import ViewSet

from audit.values import Actor
from people.actor import actor_of
from people.api import matching, paging
from people.api.json_body import MOST_BYTES
from people.api.problems import LONGEST, Problem
from people.models import Token, User
from people.permissions import may_review

READING: Final = ("GET", "HEAD", "OPTIONS", "TRACE")
LONGEST_NAME: Final = 150  # of an actor, as an event keeps it
_PAGED: Final = ("cursor", "limit")


class OnlyJSON(BaseContentNegotiation):
    """Answer JSON whatever is asked for: there is nothing else, and no `?format=` changes an answer."""

    def select_parser(self, request: Request, parsers: Iterable[Any]) -> Any:
        """The JSON parser for JSON, nothing for the rest (415)."""
        kind = (request.content_type or "").partition(";")[0].strip().lower()
        return next((parser for parser in parsers if parser.media_type == kind), None)

    def select_renderer(self, request: Request, renderers: Any, format_suffix: str | None = None) -> Any:
        """The one renderer."""
        return renderers[0], renderers[0].media_type


class Resource(ViewSet):
    """A resource. `read_scope` and `write_scope` are scopes of people/scopes.py; without the latter nothing is written.

    `asked` are the parameters that a list takes beside cursor and limit: a FilterSet, which the schema shows as well.
    """

    read_scope: ClassVar[str]
    write_scope: ClassVar[str] = ""
    filterset_class: ClassVar[type[Any] | None] = None
    parameters_of_one: ClassVar[frozenset[str]] = frozenset()  # what the address of one of them takes
    provider_filters: ClassVar[frozenset[str]] = frozenset()  # over fields that tenants' people are not shown
    content_negotiation_class = OnlyJSON
    http_method_names: ClassVar[list[str]] = ["get", "head", "post", "patch", "delete"]  # type: ignore[misc]
    lookup_url_kwarg = "id"

    @property
    def required_scope(self) -> str:
        """What the shown token must be for; see `people.authentication`."""
        is_reading = self.request.method in READING or not self.write_scope
        return self.read_scope if is_reading else self.write_scope

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Ask who it is, then whether the request is one of ours."""
        super().initial(request, *args, **kwargs)
        length = request.META.get("CONTENT_LENGTH") or "0"
        if not length.isdecimal() or int(length[:12]) > MOST_BYTES:
            raise Problem("body_too_large", f"The body has more than {MOST_BYTES} bytes.")
        _refuse_unknown_parameters(request, self._parameters())

    def _parameters(self) -> set[str]:
        """The names that the address may ask for: those of the filters and of pages on a list, none elsewhere."""
        if getattr(self, "action", None) != "list":
            return set(self.parameters_of_one) if getattr(self, "action", None) == "retrieve" else set()
        names = {*_PAGED, *(self.filterset_class.base_filters if self.filterset_class else ())}
        return names if may_review(self.request.user) else names - self.provider_filters

    def asked(self, rows: "QuerySet[Any]") -> Any:
        """The filters of the address over `rows`. Raises Problem for a value that a filter does not take."""
        assert self.filterset_class is not None  # noqa: S101  only lists with filters ask
        filters = self.filterset_class(data=self.request.query_params, queryset=rows, request=self.request)
        if not filters.is_valid():
            errors = tuple((name, " ".join(map(str, sentences))) for name, sentences in filters.errors.items())
            raise Problem("invalid", f"{errors[0][0]}: {errors[0][1]}", errors=errors)
        return filters

    def paged[Row: Any](
        self, rows: "QuerySet[Row]", write: Callable[[list[Row]], Iterable[Any]], **order: Any
    ) -> Response:
        """One page, its rows put down by `write`."""
        chosen = rows if self.filterset_class is None else self.asked(rows).qs
        found, cursor = paging.page(chosen, self.request, **order)
        return self.told({"items": list(write(found)), "next_cursor": cursor})

    def told(self, shown: Any, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
        """What is shown, with its ETag; 304 to a reader who has it already."""
        tag = matching.etag_of(shown)
        known = {"ETag": tag, "Cache-Control": "private, no-cache", **(headers or {})}
        if self.request.method in ("GET", "HEAD") and matching.is_known(self.request, tag):
            return Response(status=304, headers=known)
        return Response(shown, status=status, headers=known)

    @property
    def person(self) -> User:
        """Whose token it is."""
        user = self.request.user
        assert isinstance(user, User)  # noqa: S101  a permission of every view
        return user

    @property
    def actor(self) -> Actor:
        """Who acts: the person, and by which token, as the trail names them."""
        token = self.request.auth
        plain = actor_of(self.person)
        if not isinstance(token, Token):
            return plain
        by = f" (token “{token.name}”)"
        return Actor(kind=plain.kind, key=plain.key, name=plain.name[: LONGEST_NAME - len(by)] + by)


def one_of[Row: Any](rows: "QuerySet[Row]", **key: str) -> Row:
    """The one row of a queryset that its reader may see. Raises Http404 for none, and for what can be no id."""
    if any(not 0 < len(value) <= LONGEST for value in key.values()):
        raise Http404
    found = rows.filter(**key).first()
    if found is None:
        raise Http404
    return found


def _refuse_unknown_parameters(request: Request, known: set[str]) -> None:
    """A misspelt filter would give everything, which is worse than an error."""
    for name, values in request.query_params.lists():
        if name not in known:
            which = f"It takes {', '.join(sorted(known))}." if known else "It takes none."
            raise Problem("invalid", f"“{name[:40]}” is no parameter of this address. {which}", where=name[:40])
        if len(values) > 1:
            raise Problem("invalid", f"“{name}” stands in the address more than once.", where=name)
