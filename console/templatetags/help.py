"""Tags that explain a word where it stands, and let an id be copied."""

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import slugify
from django.utils.translation import gettext

from console.glossary import meaning_of
from people.said import said

register = template.Library()


@register.simple_tag
def what(name: str, sprite: str = "") -> SafeString | str:
    """A small “?” that opens what the glossary says of `name`; nothing when it does not know the word.

    Once a page for each word: the popover has an id. It needs no script (HTML's popover), and Escape closes it.
    """
    word = meaning_of(name)
    if word is None:
        return ""
    return format_html(
        '<button type="button" class="what" popovertarget="what-{0}" aria-label="{1}">?</button>'
        '<span class="what-card" id="what-{0}" popover role="note"><strong>{2}</strong><span>{3}</span></span>',
        slugify(name), gettext("What is %(word)s?") % {"word": said(name[:])}, said(word.words), word.html,
    )  # fmt: skip
