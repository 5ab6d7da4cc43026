"""English that a page in another language still shows: what is neither a row's own words nor a term."""

import re
from html.parser import HTMLParser

from django.apps import apps
from django.db import models

ROOMS = ("people", "inventory", "partitions", "deploy", "probes", "portal", "webhooks", "audit")
SILENT = ("script", "style", "code", "pre", "kbd", "samp", "textarea", "time")
SPOKEN_ATTRIBUTES = ("aria-label", "title", "placeholder", "alt", "data-label", "data-mistake", "data-confirm")
WORD = re.compile(r"[A-Za-z][A-Za-z’'-]*[A-Za-z]")
# What is written so in every language: names of products and protocols, terms of the field, and what people type.
TERMS = frozenset({
    "FabricUI", "OpenSM", "OpenID", "OpenAPI", "InfiniBand", "Ethernet", "IPoIB", "RDMA", "RoCE", "TCP", "IP",
    "SSH", "SMP", "SM", "SHA", "P_Key", "P_Keys", "Key", "PKey", "GUID", "GUIDs", "LID", "HCA", "SIGHUP", "UTC",
    "CSV", "JSON", "API", "PDF", "SVG", "HTTP", "HTTPS", "URL", "DNS", "KV", "MTU", "QP", "GID", "MGID", "Default",
    "full", "limited", "observe", "propose", "write", "master", "standby", "partitions", "conf", "partitions.conf",
    "PortRcvConstraintErrors", "ALL", "SA", "KiB", "MiB", "GiB", "MB", "GB", "Gb", "Mb", "ms", "min",
})  # fmt: skip


# Fields that hold sentences and words of ours.
OURS = frozenset({"cause", "text", "title", "failure", "why", "error", "sentence", "action"})


class Shown(HTMLParser):
    """The texts of a page that people read: not code, not what scripts and styles hold."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self._silent: list[str] = []

    def handle_starttag(self, tag, attrs):
        said = dict(attrs)
        if (
            tag in SILENT
            or said.get("lang", "ru") != "ru"
            or "data-raw" in said
            or (self._silent and tag == self._silent[-1])
        ):
            self._silent.append(tag)
        self.texts += [value for name, value in attrs if name in SPOKEN_ATTRIBUTES and value]

    def handle_endtag(self, tag):
        if self._silent and self._silent[-1] == tag:
            self._silent.pop()

    def handle_data(self, data):
        if not self._silent:
            self.texts.append(data)


def row_words() -> frozenset[str]:
    """Every word that a row holds as somebody's own: names, ids, reasons. States and kinds are none."""
    found: set[str] = set()
    for model in apps.get_models():
        if model.__module__.partition(".")[0] not in ROOMS:
            continue
        fields = [field.name for field in model._meta.concrete_fields if _is_somebodys(field)]
        for row in model._default_manager.values_list(*fields) if fields else ():
            found.update(word for value in row for word in WORD.findall(str(value or "")))
    return frozenset(found)


def _is_somebodys(field):
    if isinstance(field, models.TextField):
        return field.name == "reason"
    is_short = isinstance(field, models.CharField) and not field.choices and (field.max_length or 999) <= 255
    return is_short and field.name not in OURS


def leftovers(html: str, known: frozenset[str]) -> dict[str, str]:
    """The English words of a page, each with the text it stands in."""
    page = Shown()
    page.feed(html)
    found: dict[str, str] = {}
    for text in page.texts:
        bare = re.sub(r"0x[0-9a-f…]+|[\w.-]*[._/:@=][\w.:/@=-]*\w|\w*\d\w*", " ", text)
        for word in WORD.findall(bare):
            if word not in TERMS and word not in known:
                found.setdefault(word, " ".join(text.split()))
    return found
