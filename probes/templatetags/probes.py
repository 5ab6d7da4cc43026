"""Filters and tags of the room's pages."""

from django import template

from probes import lamps, links
from probes.histogram import supported
from probes.profiles import UnknownProfile, words_for

register = template.Library()
register.filter("verdict_lamp", lamps.verdict)
register.filter("state_lamp", lamps.state)


@register.simple_tag
def up(kind: str, public_id: str) -> str:
    """The address of a page of a higher room; empty when there is none."""
    return links.address(kind, public_id)


@register.filter
def profile_words(name: str) -> str:
    """What a profile is for."""
    try:
        return words_for(name)
    except UnknownProfile:
        return "A profile that is no longer known."


@register.filter
def micro(nanoseconds: object) -> str:
    """Nanoseconds in µs; a dash for what is no number."""
    return "–" if not isinstance(nanoseconds, int | float) else f"{nanoseconds / 1e3:,.2f}"


@register.filter
def supports(samples: int, share: float) -> bool:
    """Whether so many samples are enough to speak of the percentile `share`."""
    return supported(share, samples=samples)


@register.filter
def rate(gbps: object) -> str:
    """A rate in Gb/s with three digits that count; a dash for what is no number."""
    if not isinstance(gbps, int | float):
        return "–"
    if 0 < gbps < 0.001:  # eight bytes at a time between emulated servers
        return "<0.001"
    return f"{gbps:,.0f}" if gbps >= 100 else f"{gbps:.3g}"


@register.filter
def percent(value: object) -> str:
    """A share with one digit after the point; a dash for what is no number."""
    return "–" if not isinstance(value, int | float) else f"{value:.1f}"


@register.filter
def about(value: float, places: int) -> str:
    """A number with so many digits after the point; from 100 on without, from 1,000 on with three digits that count."""
    if value < 100:
        return f"{value:.{places}f}"
    return f"{value if value < 1000 else float(f'{value:.3g}'):,.0f}"


@register.filter
def size(count: int | None) -> str:
    """Bytes as KiB, MiB or GiB; a dash for None."""
    if count is None:
        return "–"
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024 or unit == "GiB":
            return f"{value:,.0f} {unit}" if unit == "B" or value >= 100 else f"{value:,.3g} {unit}"
        value /= 1024
    return ""


@register.filter
def intcomma_plain(value: int) -> str:
    """A whole number with commas between thousands."""
    return f"{value:,}"


@register.filter
def pkey_hex(value: object) -> str:
    """A P_Key table entry as text, a dash when there is none."""
    return f"0x{value & 0xFFFF:04x}" if isinstance(value, int) else "–"
