"""Draws the cards of a column, and columns as tiles. In Python: a template takes a second for five thousand cards."""

from collections.abc import Iterable, Mapping

from django import template
from django.templatetags.static import static
from django.urls import reverse
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext

from console.columns import Card, Column
from console.plans import UNASSIGNED_NAME
from people.said import said

register = template.Library()
_HERE = "-"  # stands for a server's key in an address that is looked up once


@register.simple_tag
def cards(column: Column, words: Mapping[str, int], may_act: bool) -> SafeString:
    """The cards of `column`; `words` numbers what their lamps say, see `Board.four_words`."""
    before, _, after = reverse("console:server", args=[_HERE]).rpartition(_HERE)
    move = escape(gettext("Move %(server)s")) if may_act else ""
    return mark_safe("\n".join(_drawn(column, words, move, before, after)))  # noqa: S308  every part is escaped


def _drawn(column: Column, words: Mapping[str, int], label: str, before: str, after: str) -> Iterable[str]:
    """The cards, with a button when it has a `label`."""
    for card in column.cards:
        name = escape(card.hostname)
        staged = " card-staged" if card.staged is not None else ""
        move = (
            f'<button class="card-move" type="button" tabindex="-1" aria-label="{label % {"server": name}}"></button>'
            if label
            else ""
        )
        yield (
            f'<article class="card{staged}" id="card-{column.key}-{card.key}" data-server="{card.key}" '
            f'data-name="{name}" data-kind="{card.kind}" role="group" tabindex="-1" aria-label="{name}" '
            f'aria-describedby="four-{words[card.four.words]}">'
            f'<a class="card-name" href="{before}{card.key}{after}" tabindex="-1" draggable="false">{name}</a>'
            f'<span class="card-facts four {card.four.css}">{_facts(card)}</span>{move}</article>'
        )


def _facts(card: Card) -> str:
    """What is staged, what is wrong, or else the ports; the stylesheet draws the four lamps behind it."""
    told: list[str] = []
    if card.staged is not None:
        note = card.staged
        by = gettext("you") if note.is_mine else escape(note.by)
        arrow = icon("arrow-narrow-right", gettext("to"))
        told.append(f'<span class="card-way">{escape(place(note.leaves))}{arrow}{escape(place(note.joins))}</span>')
        told.append(f'<span class="card-by">{by}</span>')
        if note.waits:
            told.append(f'<span class="card-waits">{icon("hourglass")}{gettext("joins when clean")}</span>')
    if card.trouble is not None:
        word = _words(card.trouble.word)
        told.append(f'<span class="card-trouble card-{card.trouble.colour}">{icon(card.trouble.shape)}{word}</span>')
    elif (odd := card.four.trouble) is not None:
        colour = "bad" if odd.glow == "bad" else "warn"
        told.append(f'<span class="card-trouble card-{colour}">{icon("alert-triangle")}{_words(odd.word)}</span>')
    elif card.staged is None:
        told.append(_words(card.facts))
    return " ".join(told)


@register.filter
def place(name: str) -> str:
    """A partition by its name, whatever that means in a language; where servers in none are, in the reader's."""
    return gettext("Unassigned") if name == UNASSIGNED_NAME else name


def _words(sentence: str) -> str:
    """A sentence of ours in the reader's language, escaped."""
    return escape(said(sentence))


@register.simple_tag
def tile(column: Column, is_search: bool) -> SafeString:
    """A column that is not open: what it is called, how many are in it, and how they are."""
    key, name = column.key, escape(column.called)
    servers = gettext("servers")
    of_all = escape(gettext("of %(column_total)s") % {"column_total": column.total})
    count = f"{len(column.cards)} <small>{of_all}</small>" if is_search else str(column.total)
    classes = " ".join(("tile", "drop")) + (" tile-none" if is_search and not column.cards else "")
    classes += " column-shared" if column.is_shared else ""
    pkey = f"<code>{column.pkey}</code>" if column.pkey else ""
    return mark_safe(  # noqa: S308  every part is escaped
        f'<section class="{classes}" id="tile-{key}" data-key="{key}" data-name="{name}" '
        f'data-tenant="{escape(column.tenant)}" data-pkey="{column.pkey}"{" data-shared" if column.is_shared else ""} '
        f'aria-label="{name}"><button class="tile-open" type="button" data-open="{key}" '
        f'aria-describedby="tile-count-{key} tile-foot-{key}">{name}</button>'
        f'<span class="tile-count" id="tile-count-{key}">{count}<span class="visually-hidden"> {servers}</span></span>'
        f'{bar(column)}<span class="tile-foot" id="tile-foot-{key}">{pkey}{badges(column)}'
        f'<span class="visually-hidden">{_words(column.bar_words)}</span></span></section>'
    )


@register.simple_tag
def bar(column: Column) -> SafeString:
    """How the servers of a column are, as stretches of one bar; the badges and a hidden sentence say it in words."""
    rects = "".join(
        f'<rect class="bar-{share.state}" x="{share.start:g}" width="{share.width:g}" height="4"/>'
        for share in column.bar
    )
    return mark_safe(  # noqa: S308  numbers and our own words
        f'<svg class="bar" viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">{rects}</svg>'
    )


@register.simple_tag
def badges(column: Column) -> SafeString:
    """What is staged into and out of a column, and how many of its servers have lamps that disagree."""
    told = ""
    if column.joining:
        told += f'<span class="badge-in">{gettext("+%(n)s joining") % {"n": column.joining}}</span>'
    if column.leaving:
        told += f'<span class="badge-in">{gettext("−%(n)s leaving") % {"n": column.leaving}}</span>'
    if column.troubled:
        words = gettext("%(n)s in trouble") % {"n": column.troubled}
        told += f'<span class="badge-bad">{icon("alert-triangle")}{words}</span>'
    return mark_safe(told)  # noqa: S308  numbers and our own words


def icon(name: str, label: str = "") -> str:
    """An icon as `{% icon %}` of the page's tags draws it."""
    role = f'role="img" aria-label="{escape(label)}"' if label else 'aria-hidden="true"'
    return f'<svg class="icon" {role}><use href="{static("vendor/icons/sprite.svg")}#{name}"></use></svg>'
