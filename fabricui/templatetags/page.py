"""Tags that every page may use: icons, lamps, times, digests."""

from datetime import UTC, datetime
from typing import Final, Protocol

from django import template
from django.db.models import Model
from django.templatetags.static import static
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.timesince import timesince
from django.utils.translation import gettext, ngettext, override

from people.said import said, told

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
    return format_html(
        '<span class="lamp lamp-{}{}">{}{}</span>', value.colour, extra, icon(value.shape), said(value.word)
    )


@register.filter("said")
def in_the_readers_language(value: object) -> object:
    """A sentence of ours, a list of them, or what a row calls itself, in the reader's language (people.said)."""
    return said(str(value) if isinstance(value, Model) else value)


@register.filter("told")
def in_the_readers_time(value: object) -> object:
    """The same for a page's text: a moment in it is in the reader's zone, with UTC on hover. Not for attributes."""
    return told(str(value) if isinstance(value, Model) else value)


class Told(Protocol):
    """An event of the trail as far as it names what it is about."""

    @property
    def subject_kind(self) -> str: ...
    @property
    def subject_key(self) -> str: ...
    @property
    def subject_label(self) -> str: ...


# What people have named themselves is never translated, whatever word it is.
_CALLED_BY_US: Final = frozenset({
    "revision", "rollout", "drift", "qualification", "request", "turn", "trail", "key", "event", "trial",
    "isolation-check", "probe-incident",
})  # fmt: skip


@register.filter
def subject(event: Told) -> object:
    """What an event is about, in the reader's language where the words are ours."""
    is_ours = event.subject_kind in _CALLED_BY_US or not event.subject_key
    return said(event.subject_label) if is_ours else event.subject_label


@register.filter
def moment(value: datetime | None) -> SafeString | str:
    """A time as people read it (“3 minutes ago”), with the exact time on hover; “never” for None."""
    if value is None:
        return gettext("never")
    age = timezone.now() - value
    text = gettext("just now") if age.total_seconds() < 60 else ago(value)
    return _time(value, local(value) if _is_utc() else f"{local(value)} · {utc(value)}", text)


@register.filter
def exact(value: datetime | None) -> SafeString | str:
    """A time to the second in the reader's zone, in UTC on hover; “never” for None."""
    return gettext("never") if value is None else _time(value, utc(value), local(value))


@register.filter
def clock(value: datetime | None) -> SafeString | str:
    """The time of day to the second in the reader's zone, with the date and UTC on hover; a dash for None."""
    if value is None:
        return "–"
    return _time(value, utc(value), timezone.localtime(value).strftime("%H:%M:%S"))


@register.filter
def instant(value: datetime) -> SafeString:
    """A time to the second in the reader's zone, with UTC and how long ago on hover: for lists read as a record."""
    return _time(value, ago(value) if _is_utc() else f"{utc(value)}, {ago(value)}", local(value))


@register.filter
def utc(value: datetime | None) -> str:
    """A time to the second in UTC, as plain text: on hover, and where evidence is printed."""
    return gettext("never") if value is None else value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


@register.simple_tag
def zone_name() -> str:
    """What the reader's time zone calls itself now: “UTC”, “MSK”, “+05”."""
    return timezone.localtime(timezone.now()).tzname() or "UTC"


def local(value: datetime) -> str:
    """A time to the second in the reader's zone, with the zone's name."""
    return timezone.localtime(value).strftime("%Y-%m-%d %H:%M:%S %Z")


def ago(value: datetime) -> str:
    """How long ago, in the largest unit: “3 minutes ago”."""
    with override("en"):
        number, unit = timesince(value, depth=1).split("\xa0")
    n = int(number)
    words = {
        "minute": ngettext("%(n)d\xa0minute ago", "%(n)d\xa0minutes ago", n),
        "hour": ngettext("%(n)d\xa0hour ago", "%(n)d\xa0hours ago", n),
        "day": ngettext("%(n)d\xa0day ago", "%(n)d\xa0days ago", n),
        "week": ngettext("%(n)d\xa0week ago", "%(n)d\xa0weeks ago", n),
        "month": ngettext("%(n)d\xa0month ago", "%(n)d\xa0months ago", n),
        "year": ngettext("%(n)d\xa0year ago", "%(n)d\xa0years ago", n),
    }
    return words[unit.removesuffix("s")] % {"n": n}


def _is_utc() -> bool:
    return timezone.get_current_timezone_name() == "UTC"


def _time(value: datetime, on_hover: str, text: str) -> SafeString:
    return format_html('<time datetime="{}" title="{}">{}</time>', value.isoformat(), on_hover, text)


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
