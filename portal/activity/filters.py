"""What the address of Activity asks for: the filters as they stand in the form, and as the trail is asked."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from django.http import HttpRequest
from django.utils.functional import Promise
from django.utils.translation import gettext, gettext_lazy

from console.requests import filter_text
from console.review import Typed, moments
from portal.activity.found import FABRICUI, PROVIDER, Asked
from portal.activity.kinds import Kind

NAMES: Final = ("what", "who", "since", "until")
WORDS: Final[dict[Kind, Promise]] = {
    Kind.MOVES: gettext_lazy("moves"),
    Kind.ROLLOUTS: gettext_lazy("rollouts"),
    Kind.PARTITIONS: gettext_lazy("partitions"),
    Kind.REQUESTS: gettext_lazy("requests"),
    Kind.PEOPLE: gettext_lazy("people"),
    Kind.TOKENS: gettext_lazy("API tokens"),
    Kind.EVIDENCE: gettext_lazy("evidence and exports"),
    Kind.WEBHOOKS: gettext_lazy("webhooks"),
    Kind.TERMS: gettext_lazy("what you may do"),
}


@dataclass(frozen=True, slots=True)
class Filters(Typed):
    """What is asked for, and the same for the trail."""

    asked: Asked

    @property
    def is_filtered(self) -> bool:
        """Whether anything is left out."""
        return self.asked != Asked()


def filters(request: HttpRequest, *, people: Mapping[str, str]) -> Filters:
    """Read the filters from the address; `people` are those whom the tenant may ask for.

    Somebody of another tenant's and nobody at all are answered alike.
    """
    texts = {name: filter_text(request, name) for name in NAMES}
    since, until, problems = moments(texts)
    if texts["what"] and texts["what"] not in WORDS:
        problems.append(gettext("Nothing of that kind is told here. Choose one from the list."))
        texts["what"] = ""
    if texts["who"] and texts["who"] not in {PROVIDER, FABRICUI, *people}:
        problems.append(gettext("Nobody of yours is known by that. Choose somebody from the list."))
        texts["who"] = ""
    what = Kind(texts["what"]) if texts["what"] else None
    return Filters(texts, tuple(problems), Asked(what=what, who=texts["who"], since=since, until=until))
