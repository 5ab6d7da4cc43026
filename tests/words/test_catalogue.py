"""The Russian catalogue: complete, compiled, with the values of its English, and no visible English outside it."""

import re
from html.parser import HTMLParser

import pytest

from lab.words import catalogue
from lab.words.messages import ROOT, Message, endings, found, of_python, spoken

FOLDER = ROOT / "locale/ru/LC_MESSAGES"
VALUE = re.compile(r"%\((\w+)\)[sd]")
HOLE = re.compile(r"\{(\w+)(?::[^{}]*)?\}")
ENDINGS = endings()


@pytest.fixture(scope="module")
def known():
    return catalogue.read(FOLDER / "django.po")


def test_every_message_is_translated(known):
    """Run `python -m lab.words` and translate what it names."""
    lacking = [one.english for one in found() if not all(known.get(one, ("",)))]
    assert lacking == []


def test_the_catalogue_holds_nothing_that_no_source_has(known):
    assert set(known) - set(found()) == set()


def test_the_compiled_catalogue_belongs_to_the_one_that_people_read(known):
    assert (FOLDER / "django.mo").read_bytes() == catalogue.compiled(known), "run python -m lab.words"


def wrong_values(message, forms):
    """The forms whose values are not those of the English, or that would break the page."""
    wanted = set(VALUE.findall(message.english)) | set(VALUE.findall(message.plural or ""))
    forms_of_words = ENDINGS.get(message.english, set())
    holes = set(HOLE.findall(message.english)) - forms_of_words if message.context else set()
    for form in forms:
        wrong = set(VALUE.findall(form)) != wanted
        wrong |= message.context is not None and set(HOLE.findall(form)) - forms_of_words != holes
        wrong |= bool(wanted) and "%" in re.sub(r"%%|%\(\w+\)[sd]", "", form)
        wrong |= sorted(re.findall(r"</?\w+>", form)) != sorted(re.findall(r"</?\w+>", message.english))
        if wrong or form.count('"') > message.english.count('"'):
            yield form


def test_values_and_marks_are_those_of_the_english(known):
    assert [bad for message, forms in known.items() for bad in wrong_values(message, forms)] == []


@pytest.mark.parametrize(
    ("english", "russian"),
    [
        ("%(n)s port", "порт"),
        ("<strong>Next:</strong> %(next)s", "Дальше: %(next)s"),
        ("by %(people)s", "от %(люди)s"),
        ("Dismiss", 'Закрыть "это"'),
    ],
)
def test_a_lost_value_or_mark_is_seen(english, russian):
    assert list(wrong_values(Message(None, english, None), (russian,)))


def test_sources_are_read_as_the_product_reads_them():
    source = 'from x import ngettext\nngettext("%(n)s port", "%(n)s ports", n)\n'
    assert list(of_python(source)) == [Message(None, "%(n)s port", "%(n)s ports")]
    assert list(spoken('x = f"Rollout {rollout.public_id} holds {subnet.name} now."')) == [
        Message("said", "Rollout {public_id} holds {name} now.", None)
    ]


@pytest.mark.parametrize(
    "source",
    ['"device %s has %d ports, %.3g %% of them"', '"device {} has {} ports, {} % of them".format(a, b, c)'],
)
def test_texts_that_percent_or_format_fill_have_a_name_for_each_value(source):
    english = "device {value1} has {value2} ports, {value3} % of them"
    assert list(spoken(f"x = {source}")) == [Message("said", english, None)]


ALLOWED = {  # names, units and what is typed to the letter
    "FabricUI", "OpenSM", "P_Key", "P_Keys", "GUID", "GUIDs", "LID", "UTC", "CSV", "JSON", "SM", "HCA", "HCAs",
    "English", "Русский", "KiB", "MiB", "Gb", "µs", "p50", "p99", "TCP", "RDMA", "IPoIB", "SHA-256", "Esc", "Ctrl",
    "partitions.conf", "LEAK",
}  # fmt: skip
SPOKEN_ATTRIBUTES = {"aria-label", "title", "placeholder", "alt", "data-label"}


class Visible(HTMLParser):
    """Collects the text and the attributes that people read."""

    def __init__(self):
        super().__init__()
        self.words, self.silent = [], 0

    def handle_starttag(self, tag, attributes):
        self.silent += tag in ("script", "style", "code", "pre", "kbd")
        self.words += [value for name, value in attributes if name in SPOKEN_ATTRIBUTES and value]

    def handle_startendtag(self, tag, attributes):
        self.words += [value for name, value in attributes if name in SPOKEN_ATTRIBUTES and value]

    def handle_endtag(self, tag):
        self.silent -= tag in ("script", "style", "code", "pre", "kbd")

    def handle_data(self, text):
        if not self.silent:
            self.words.append(text)


def untranslated(source):
    """The words of a template that people would read in English whatever their language."""
    source = re.sub(r"\{%\s*blocktranslate.*?endblocktranslate\s*%\}|\{#.*?#\}", "", source, flags=re.S)
    source = re.sub(r"\{%\s*comment.*?endcomment\s*%\}|\{%\s*block \w+_class\s*%\}.*?endblock", "", source, flags=re.S)
    source = re.sub(r"\{%.*?%\}|\{\{.*?\}\}", "\u00b7", source, flags=re.S)
    reader = Visible()
    reader.feed(source)
    found = []
    for text in reader.words:
        words = [word.strip(".,:;()…/“”") for word in re.split(r"[\s·/]+", text)]
        found += [word for word in words if re.search(r"[A-Za-z]{2}", word) and word not in ALLOWED]
    return found


@pytest.mark.parametrize("path", sorted((ROOT / "templates").glob("**/*.html")), ids=lambda path: path.name)
def test_no_visible_words_stand_outside_translate_tags(path):
    assert untranslated(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "source",
    [
        "<p>Hello there</p>",
        '<a title="Look">{{ x }}</a>',
        "{% if a %}shared{% endif %}",
        '{% translate "Known" %} and more',
    ],
)
def test_the_scan_sees_words_that_were_forgotten(source):
    assert untranslated(source)
    assert not untranslated(
        '{% translate "Known" %}<code>typed</code>{% blocktranslate %}Also {{ x }}{% endblocktranslate %}'
    )
