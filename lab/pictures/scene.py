"""What a site of pictures is, for those who open its pages."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from people.models import User


@dataclass
class Scene:
    """Who looks, and what stands in the addresses: of a page by its name, or of every page of a view."""

    people: "dict[str, User]" = field(default_factory=dict)
    places: dict[str, list[object]] = field(default_factory=dict)
    words: dict[str, str] = field(default_factory=dict)  # in queries
