"""Each sentence of ours is recognised as itself: no pattern takes what another one made, nor what is none of ours."""

from people.said import _HOLE, _filling, _messages, compiled, in_language

# In English alike to the letter, of other things; the one Russian of both is understood for each.
ALIKE = {"{name} of {user}", "{number} at {index}", "{ports_here} of {facts}"}


def sample(english: str, translated: str) -> str:
    """A sentence as Python would make it: a number where one is counted, an ending where nothing is put back."""
    how = {hole[1]: hole[2] or "" for hole in _HOLE.finditer(translated)}

    def value(hole):
        kind = how.get(hole[1])
        if kind is None:
            return "s"
        return "7" if "|" in kind or kind == "#" else f"x{list(how).index(hole[1])}q"

    return _HOLE.sub(value, english)


def taken_by_another() -> list[tuple[str, str]]:
    found = []
    for english, translated in _messages("ru"):
        english, translated = english.strip(), translated.strip()
        if _HOLE.search(english) is None or english in ALIKE:
            continue
        text = sample(english, translated)
        match = compiled(english, translated).fullmatch(text)
        own = None if match is None else _HOLE.sub(_filling(match, "ru"), translated)
        if own != in_language(text, "ru"):
            found.append((english, in_language(text, "ru")))
    return found


def test_no_pattern_takes_the_sentence_of_another():
    assert taken_by_another() == []


def test_a_pattern_that_takes_too_much_is_found(monkeypatch):
    from tests.words import test_patterns

    messages = [*_messages("ru"), ("Rollout {id} {state}", "Развёртывание {id}: {state:said}")]
    narrow = ("Rollout {id} waits", "Развёртывание {id} ждёт")
    monkeypatch.setattr(test_patterns, "_messages", lambda language: [*messages, narrow])
    assert [english for english, _ in taken_by_another()]  # the catalogue knows neither


def test_what_is_no_sentence_of_ours_stays_as_it_is():
    for text in ("There is nothing of yours to undo.", "Is anybody out there?", "Olga is a friend of Otto."):
        assert in_language(text, "ru") == text
