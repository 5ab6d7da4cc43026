"""Tags that every page may use: icons, lamps, times, digests."""

from datetime import datetime
from typing import Protocol

from django import template
from django.templatetags.static import static
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.timesince import timesince

register = template.Library()


@register.simple_tag
def icon(name: str, label: str = "") -> SafeString:
    """The icon called `name`, hidden from screen readers unless it has a label of its own."""
    address = f"{static('vendor/icons/sprite.svg')}#{name}"
    if label:
        return format_html('<svg class="icon" role="img" aria-label="{}"><use href="{}"></use></svg>', label, address)
    return format_html('<svg class="icon" aria-hidden="true" focusable="false"><use href="{}"></use></svg>', address)


class Drawn(Protocol):
    """A state as a page draws it: CSS colour class, name of an icon, and a word."""

    @property
    def colour(self) -> str: ...
    @property
    def shape(self) -> str: ...
    @property
    def word(self) -> str: ...


@register.simple_tag
def lamp(value: Drawn, size: str = "") -> SafeString:
    """Colour, shape and word of a state."""
    extra = " lamp-large" if size == "large" else ""
    return format_html('<span class="lamp lamp-{}{}">{}{}</span>', value.colour, extra, icon(value.shape), value.word)


@register.filter
def moment(value: datetime | None) -> SafeString | str:
    """A time as people read it (“3 minutes ago”), with the exact time in UTC on hover; “never” for None."""
    if value is None:
        return "never"
    age = timezone.now() - value
    text = "just now" if age.total_seconds() < 60 else f"{timesince(value, depth=1)} ago"
    return format_html('<time datetime="{}" title="{}">{}</time>', value.isoformat(), exact(value), text)


@register.filter
def exact(value: datetime | None) -> str:
    """A time to the second, in UTC."""
    return "never" if value is None else value.strftime("%Y-%m-%d %H:%M:%S UTC")


@register.filter
def clock(value: datetime | None) -> SafeString | str:
    """The time of day to the second, with the date on hover; a dash for None."""
    if value is None:
        return "–"
    return format_html(
        '<time datetime="{}" title="{}">{}</time>', value.isoformat(), exact(value), value.strftime("%H:%M:%S")
    )


@register.filter
def instant(value: datetime) -> SafeString:
    """A time to the second in UTC, with how long ago that was on hover: for lists that are read as a record."""
    ago = f"{timesince(value, depth=1)} ago"
    return format_html('<time datetime="{}" title="{}">{}</time>', value.isoformat(), ago, exact(value))


@register.filter
def short(value: str | None) -> str:
    """The first 12 characters of a digest, which people compare by eye; a dash when there is none."""
    return (value or "–")[:12]


@register.filter
def diff_lines(text: str) -> SafeString:
    """A unified diff with each line marked by what it does; the marks are text as well, so colour is not needed."""
    kinds = {"+": "diff-add", "-": "diff-del", "@": "diff-at"}
    lines = (
        (("diff-head" if line.startswith(("---", "+++")) else kinds.get(line[:1], "diff-same")), line)
        for line in text.split("\n")
    )
    return format_html_join("", '<span class="{}">{}</span>', lines)  # each is a block: no newline between them
