"""What there is to translate: the tags of the templates, gettext calls, and the sentences that pages recognise.

Templates are read by Django's own parser and Python by `ast`, so nothing that the product would translate is missed,
and no program of gettext is needed.
"""

import ast
import re
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any, Final, NamedTuple

from django.template import Origin, Template, engines
from django.template.base import FilterExpression, Node
from django.templatetags.i18n import BlockTranslateNode, TranslateNode

from lab.words.listed import SPOKEN, WORDS
from people.said import CONTEXT

ROOT: Final = Path(__file__).resolve().parent.parent.parent
CALLS: Final = {
    "gettext": (None, 0, None), "gettext_lazy": (None, 0, None), "_": (None, 0, None),
    "ngettext": (None, 0, 1), "ngettext_lazy": (None, 0, 1),
    "pgettext": (0, 1, None), "pgettext_lazy": (0, 1, None), "npgettext": (0, 1, 2),
}  # fmt: skip
# Rooms whose rows have choices that pages name.
LABELLED: Final = ("people", "inventory", "deploy", "partitions", "probes", "audit", "portal", "webhooks")
# Words in the arguments of tags and filters: {% icon "check" _("done") %}.
MARKED: Final = re.compile(r"""_\("([^"]*)"\)|_\('([^']*)'\)""")
LONGEST_ENDING: Final = 12
PERCENT: Final = re.compile(r"%(?:\.\d+|0\d+)?[sdrgfx]|\{\}")  # where “%” or “format” put a value


class Message(NamedTuple):
    """One entry of the catalogue: its context, its English, the plural of that."""

    context: str | None
    english: str
    plural: str | None


def found() -> dict[Message, list[str]]:
    """Every message with the files that use it, in the order of the files."""
    seen: dict[Message, list[str]] = {}
    for path in sorted(ROOT.glob("templates/**/*.html")):
        _note(seen, of_template(path), path)
    from lab.words import host_program, scripts

    for program in host_program.PATHS:
        _note(seen, host_program.of_program((ROOT / program).read_text(encoding="utf-8")), ROOT / program)
    for path in scripts.paths():
        _note(seen, scripts.of_script(path.read_text(encoding="utf-8")), path)
    rooms = (
        "fabricui",
        "portal",
        "console",
        "webhooks",
        "probes",
        "partitions",
        "deploy",
        "inventory",
        "live",
        "people",
    )
    for room in rooms:
        for path in sorted((ROOT / room).glob("**/*.py")):
            _note(seen, of_python(path.read_text(encoding="utf-8")), path)
    for name in SPOKEN:
        if (ROOT / name).exists():
            _note(seen, spoken((ROOT / name).read_text(encoding="utf-8")), ROOT / name)
    _note(seen, labels(), ROOT / "people/models.py")
    _note(seen, glossary(), ROOT / "docs/glossary.md")
    _note(seen, (Message(CONTEXT, word, None) for word in WORDS), ROOT / "lab/words/messages.py")
    _note(seen, deeds(), ROOT / "audit/actions.py")
    _note(seen, scopes(), ROOT / "people/scopes.py")
    # gettext has one entry for a singular, with its plural if any use has one
    counted = {(one.context, one.english) for one in seen if one.plural is not None}
    return {
        one: places for one, places in seen.items()
        if one.plural is not None or (one.context, one.english) not in counted
    }  # fmt: skip


def _note(seen: dict[Message, list[str]], messages: Iterator[Message], path: Path) -> None:
    name = str(path.relative_to(ROOT))
    for message in messages:
        places = seen.setdefault(message, [])
        if name not in places:
            places.append(name)


def of_template(path: Path) -> Iterator[Message]:
    """The messages of a template, found by walking what Django made of it."""
    engine = engines["django"].engine  # type: ignore[attr-defined]
    template = Template(path.read_text(encoding="utf-8"), origin=Origin(str(path), str(path)), engine=engine)
    yield from _of_nodes(template.nodelist, set())
    for partial in getattr(template, "extra_data", {}).get("partials", {}).values():
        yield from _of_nodes([partial], set())


def _of_nodes(nodes: Any, seen: set[int]) -> Iterator[Message]:
    for node in nodes:
        yield from _of_thing(node, seen)


def _of_thing(thing: Any, seen: set[int]) -> Iterator[Message]:
    if id(thing) in seen:
        return
    seen.add(id(thing))
    if isinstance(thing, BlockTranslateNode):
        context = _literal(thing.message_context)
        singular, plural = thing.render_token_list(thing.singular)[0], None
        if thing.plural and thing.countervar and thing.counter:
            plural = thing.render_token_list(thing.plural)[0]
        yield Message(context, singular, plural)
    elif isinstance(thing, TranslateNode):
        yield Message(
            _literal(thing.message_context), str(thing.filter_expression.var.literal).replace("%", "%%"), None
        )
    if isinstance(thing, FilterExpression):
        for double, single in MARKED.findall(thing.token):
            yield Message(None, (double or single).replace("%", "%%"), None)
    elif isinstance(thing, Node):
        for value in vars(thing).values():
            yield from _of_thing(value, seen)
    elif isinstance(thing, list | tuple):
        yield from _of_nodes(thing, seen)
    elif isinstance(thing, dict):
        yield from _of_nodes(thing.values(), seen)
    elif hasattr(thing, "nodelist") or type(thing).__module__.startswith("django.template.smartif"):
        for value in vars(thing).values():
            yield from _of_thing(value, seen)


def _literal(expression: Any) -> str | None:
    return str(expression.var) if expression is not None else None


def of_python(source: str) -> Iterator[Message]:
    """The calls of gettext and its kin, with constant words."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        name = _called(node)
        if name not in CALLS:
            continue
        words = [str(one.value) if isinstance(one, ast.Constant) else None for one in node.args]
        context, english, plural = (None if at is None or at >= len(words) else words[at] for at in CALLS[name])
        if isinstance(english, str):
            yield Message(context, english, plural)


def _called(node: ast.Call) -> str:
    return node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")


def spoken(source: str) -> Iterator[Message]:
    """The sentences of a module, values as names in braces, and the words of its lamps."""
    tree = ast.parse(source)
    passed = _docstrings(tree) | _not_for_pages(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _called(node) in ("Lamp", "cls"):
            for one in node.args:
                if isinstance(one, ast.Constant) and isinstance(one.value, str) and one is node.args[-1]:
                    yield Message(CONTEXT, one.value, None)
        if isinstance(node, ast.JoinedStr):
            passed |= {id(one) for one in node.values} | {id(form) for one in node.values for form in _ending(one)}
            if id(node) in passed:
                continue
            said = "".join(str(one.value) if isinstance(one, ast.Constant) else "0" for one in node.values)
            if _is_sentence(said):
                yield Message(CONTEXT, pattern_of(node), None)
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in passed
            and _is_sentence(node.value.strip())
        ):
            yield Message(CONTEXT, _of_percents(node.value), None)


def _of_percents(text: str) -> str:
    """A text that `%` or `format` fills, with a name for each value."""
    if not PERCENT.search(text):
        return text
    at = count(1)
    return PERCENT.sub(lambda _: f"{{value{next(at)}}}", text).replace("%%", "%")


def _ending(one: ast.expr) -> list[ast.expr]:
    """What stands for a number's form, “port{'' if n == 1 else 's'}” or “{'is' if n == 1 else 'are'}”; else nothing."""
    if not isinstance(one, ast.FormattedValue) or not isinstance(one.value, ast.IfExp):
        return []
    forms = [one.value.body, one.value.orelse]
    words = [str(form.value) for form in forms if isinstance(form, ast.Constant)]
    is_one = len(words) == 2 and all(len(word) <= LONGEST_ENDING and word == word.lower() for word in words)
    return list(forms) if is_one else []


def pattern_of(node: ast.JoinedStr) -> str:
    """An f-string as `people.said` knows it: each value by its last name, one name for one expression."""
    return _made(node)[0]


def endings() -> dict[str, set[str]]:
    """By sentence the values that only make an English form: other languages have forms of their own."""
    found: dict[str, set[str]] = {}
    for name in SPOKEN:
        for node in ast.walk(ast.parse((ROOT / name).read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                pattern, forms = _made(node)
                found.setdefault(pattern, set()).update(forms)
    return found


def _made(node: ast.JoinedStr) -> tuple[str, set[str]]:
    names: dict[str, str] = {}
    out, forms = "", set[str]()
    for one in node.values:
        if isinstance(one, ast.FormattedValue):
            name = _name(ast.unparse(one.value), names)
            out += f"{{{name}}}"
            forms |= {name} if _ending(one) else set()
        elif isinstance(one, ast.Constant):
            out += str(one.value)
    return out, forms


def _name(expression: str, names: dict[str, str]) -> str:
    if expression in names:
        return names[expression]
    words = re.findall(r"[A-Za-z_]\w*", re.sub(r"'[^']*'", "", expression))
    stem = next((word for word in reversed(words) if word not in ("if", "else", "None", "join", "str", "len")), "value")
    name, more = stem, 2
    while name in names.values():
        name, more = f"{stem}{more}", more + 1
    names[expression] = name
    return name


def _is_sentence(text: str) -> bool:
    """Whether these are at least two words, values (“0”) among them, and no address, pattern or name of a program's."""
    is_one = re.search(r"[A-Za-z]{2,}\W? |\w \W?\w", text) and re.search(r"[A-Za-z]{2,}", text)
    return bool(is_one) and not re.search(r"""<|>|__|\|\||%\(|="|; charset=|^[a-z_]+\.""", text)


# Whose words pages never show through `|said`: gettext translates its own, a log is for machines, the rest for
# programs.
NOT_SHOWN: Final = frozenset(CALLS) | {
    "debug", "info", "warning", "exception", "critical", "extend_schema", "OpenApiParameter", "add_argument",
    "TypeError", "AssertionError", "NotImplementedError", "ImproperlyConfigured", "OpenApiResponse", "compile",
}  # fmt: skip


def _not_for_pages(tree: ast.AST) -> set[int]:
    """Everything written inside calls of those, in `__repr__`, and in annotations."""
    found: set[int] = set()
    for node in ast.walk(tree):
        parts: list[ast.AST] = []
        if isinstance(node, ast.Call):
            parts = [node] if _called(node) in NOT_SHOWN else []
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            parts = [node] if node.name == "__repr__" else [one for one in (node.returns, *node.args.args) if one]
        elif isinstance(node, ast.AnnAssign):
            parts = [node.annotation]
        found |= {id(one) for part in parts for one in ast.walk(part)}
    return found


def _docstrings(tree: ast.AST) -> set[int]:
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.body:
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                found.add(id(first.value))
    return found


def glossary() -> Iterator[Message]:
    """The words of docs/glossary.md and what they mean: every page explains them where they stand."""
    from console.glossary import words

    for word in words():
        yield from (Message(CONTEXT, word.words, None), Message(CONTEXT, word.meaning, None))


def labels() -> Iterator[Message]:
    """What the rows' own choices are called, of our rooms."""
    from django.apps import apps

    for model in apps.get_models():
        if model.__module__.partition(".")[0] in LABELLED:
            for field in model._meta.get_fields():
                if getattr(field, "name", "") != "language":
                    for _, label in getattr(field, "choices", None) or ():
                        yield Message(CONTEXT, str(label), None)


def deeds() -> Iterator[Message]:
    """What the trail says that somebody did, between their name and the thing's."""
    from audit.actions import Action

    for action in Action:
        yield Message(CONTEXT, action.words, None)


def scopes() -> Iterator[Message]:
    """What each scope of the API's tokens is for."""
    from fabricui import api  # noqa: F401  the rooms' scopes come with it
    from people.scopes import every

    for scope in every():
        yield Message(CONTEXT, scope.words, None)
