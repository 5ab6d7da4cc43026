"""The sentences of the pages' scripts: found, handed to the browser, and none of them outside of its call."""

import json
import re

import pytest

from lab.words import catalogue, scripts
from lab.words.messages import Message, found
from tests.words.test_catalogue import FOLDER

# What looks like words in a script and is shown to nobody: attributes, classes, keys, headers.
NOT_SHOWN = {
    "Accept", "All", "ArrowDown", "ArrowLeft", "ArrowRight", "ArrowUp", "End", "Enter", "Escape", "Home", "KEY",
    "PageDown", "PageUp", "Tab", "UTC", "Etc/UTC", "X-CSRFToken", "If-None-Match", "Content-Type", "ETag",
    "btn btn-small", "note note-error", "note note-success", "staged partition rollout server subnet drift look",
}  # fmt: skip
WORDS = re.compile(r"[A-Za-z]{2,}[,;:]? [A-Za-z0]|^[A-Z][a-z]")
SELECTOR = re.compile(r"^[.#\[(]|^[a-z]+[.\[:(]\S|^(?:input|button|main|td|table|a),? ")


def forgotten(source):
    """The literals of a script that people would read in English whatever their language."""
    return [
        text for text in scripts.literals(source)
        if WORDS.search(text) and text not in NOT_SHOWN and not SELECTOR.search(text)
    ]  # fmt: skip


@pytest.mark.parametrize("path", scripts.paths(), ids=lambda path: path.name)
def test_no_visible_words_stand_outside_of_a_call(path):
    assert forgotten(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "source",
    [
        'note.textContent = "Got it";',
        "announce(`${names} picked up. Choose a partition.`);",
        'const it = isOne ? "one" : "no server matches";',
        'close.title = "Close";',
    ],
)
def test_the_scan_sees_words_that_were_forgotten(source):
    assert forgotten(source)


def test_the_scan_passes_what_is_translated_and_what_nobody_reads():
    assert not forgotten('say(phrase("Got it")); // An "explanation here"\nlist.querySelector(".a .b, .c > .d");')


def test_sentences_are_found_with_their_plurals_and_comments_are_none():
    source = """
    // phrase("Not this one")
    const it = phrase("Over {name}.", { name }) + counted("{n} server",
      "{n} servers", n) + phrase("Say \\"hello\\"");
    """
    assert list(scripts.of_script(source)) == [
        Message("script", "Over {name}.", None), Message("script", "{n} server", "{n} servers"),
        Message("script", 'Say "hello"', None),
    ]  # fmt: skip


def test_every_call_names_its_sentence_to_the_letter():
    """What a variable named would be found by nobody and shown in English."""
    for path in scripts.paths():
        source = scripts.without_comments(path.read_text(encoding="utf-8"))
        calls = re.findall(r"(?<!function )\b(?:phrase|counted)\(", source)
        assert len(calls) == len(list(scripts.of_script(source))), path.name


def test_the_completeness_of_the_catalogue_covers_scripts():
    places = found()
    assert places[Message("script", "{n} server", "{n} servers")] == ["static/js/board/live.js"]
    assert sum(one.context == scripts.CONTEXT for one in places) > 30


def test_the_browsers_words_are_those_of_the_catalogue():
    known = catalogue.read(FOLDER / "django.po")
    path = scripts.WRITTEN / "ru.js"
    assert path.read_text(encoding="utf-8") == scripts.module("ru", known), "run python -m lab.words"


def test_a_module_has_no_more_than_its_scripts_need():
    taught = scripts.module(
        "ru",
        {
            Message("script", "Got it", None): ("Понятно",),
            Message("script", "{n} port", "{n} ports"): ("{n} порт", "{n} порта", "{n} портов"),
            Message("script", "Lost", None): ("",),
            Message(None, "Board", None): ("Доска",),
        },
    )
    pairs = [json.loads(line.strip().rstrip(",")) for line in taught.splitlines() if line.startswith("  ")]
    assert pairs == [["Got it", "Понятно"], ["{n} port", ["{n} порт", "{n} порта", "{n} портов"]]]
