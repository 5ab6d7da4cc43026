"""What the documents tell a reader to type or to look at is there: commands, options, settings, units, files, links."""

import re
from importlib.util import find_spec
from pathlib import Path

import pytest
from django.core.management import get_commands, load_command_class

from fabricui import command_line

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted(
    [*(ROOT / "docs").glob("*.md"), *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md"))]
)
TEXTS = {str(page.relative_to(ROOT)): page.read_text(encoding="utf-8") for page in PAGES}
TOPS = {path.name for path in ROOT.iterdir()} - {"probes"}  # which is an address of the site too
# A block with fences, one that is indented, or a piece of a line; a block of another language is none of them.
CODE = re.compile(
    r"^ *```(?:sh|console|)\n(.*?)^ *```|^ *```.*?^ *```|(?<=\n\n)((?: {4}[^\n]*\n)+)|`([^`\n]+\n?[^`\n]+)`",
    re.DOTALL | re.MULTILINE,
)
NOT_OURS = {"venv", "zipapp", "celery", "uvicorn", "pytest"}  # modules of others
OF_THE_UNITS = {"FABRICUI_REGISTER_ADDRESS"}


def typed(page):
    """Each line of code on a page, with what a backslash continues, as one line."""
    for block, indented, span in CODE.findall(TEXTS[page]):
        for line in (block or indented or span.replace("\n", " ")).replace("\\\n", " ").replace("…", "X").splitlines():
            yield re.sub(r"(^|\s)#\s.*", "", line)  # a comment of the shell


def every(pattern):
    """Each match of `pattern` in what is typed, with its page."""
    return [(page, match) for page in TEXTS for line in typed(page) for match in re.finditer(pattern, line)]


def options_of(parser):
    """The options of a parser and of what its words lead to, and these words."""
    found, words = set(parser._option_string_actions), set()
    for action in parser._subparsers._group_actions if parser._subparsers else []:
        for word, below in action.choices.items():
            words.add(word)
            found |= options_of(below)[0]
    return found, words


def test_each_management_command_is_there_with_its_options():
    told = every(r"(?:\./run manage|manage\.py|fabricui-manage [a-z-]+) ([a-z_]+)((?:[^|#;&]|(?<=[A-Z])\|)*)")
    assert len(told) > 40
    assert {"enrol_manager_host", "retire_manager_host", "rotate_manager_key"} <= {match[1] for _, match in told}
    commands, wrong = get_commands(), []
    for page, match in told:
        name, rest = match[1], match[2].split()
        if name not in commands:
            wrong.append(f"{page}: {match[0]}: no such command")
            continue
        options, words = options_of(load_command_class(commands[name], name).create_parser("manage.py", name))
        given = {word.split("=")[0].strip("[]") for word in rest if re.match(r"\[?--?[a-z]", word)}
        wrong += [f"{page}: {match[0]}: no option {option}" for option in given - options]
        if words and rest and re.fullmatch(r"[a-z-]+", rest[0]) and rest[0] not in words:
            wrong.append(f"{page}: {match[0]}: no word {rest[0]}")
    assert not wrong, "\n".join(wrong)


def test_each_module_that_is_started_is_there():
    told = [(page, match[1].rstrip(".")) for page, match in every(r"python3? -m ([a-z_.]+)")]
    assert len(told) > 10
    assert not [each for each in told if each[1] not in NOT_OURS and find_spec(each[1]) is None]


def test_each_word_of_run_is_one(capsys):
    told = every(r"\./run ([a-z]+)(?: ([a-z]+))?")
    verbs = set(re.findall(r"[a-z]+", " ".join(re.findall(r"^    ([a-z|]+)\)", (ROOT / "run").read_text(), re.M))))
    assert {"demo", "up", "test"} <= verbs
    assert not [f"{page}: {match[0]}" for page, match in told if match[1] not in verbs]
    benches = {match[2] for _, match in told if match[1] == "bench" and match[2]}
    assert benches
    known = re.findall(r'^ +"(\w+)": bench_\w+\.[A-Z]+,$', (ROOT / "lab" / "bench.py").read_text(), re.M)
    assert benches <= set(known)
    for _, match in every(r"python -m fabricui ([a-z]+)"):
        with pytest.raises(SystemExit) as ended:
            command_line.main([match[1], "--help"])
        assert ended.value.code == 0, capsys.readouterr().err


def test_each_variable_is_read_somewhere():
    code = [*ROOT.glob("*/*.py"), *ROOT.glob("*/*/*.py"), ROOT / "run"]
    read = set(re.findall(r"FABRICUI_[A-Z_]+", "\n".join(p.read_text() for p in code if "tests" not in p.parts)))
    assert len(read) > 60
    told = {(page, name) for page, text in TEXTS.items() for name in re.findall(r"FABRICUI_[A-Z_]*[A-Z]", text)}
    known = read | {f"{name}_FILE" for name in read} | OF_THE_UNITS
    assert not sorted(each for each in told if each[1] not in known)


def test_each_unit_is_there():
    units = {path.name for path in (ROOT / "docs" / "systemd").iterdir()} | {
        path.name for path in (ROOT / "inventory").glob("fabricui-agent.*")
    }
    told = {
        name for text in TEXTS.values() for name in re.findall(r"\bfabricui[a-z-]*\.(?:service|target|timer)", text)
    }
    started = {
        name if "." in name else f"{name}.service"
        for _, match in every(r"systemctl (?:enable|start|restart|stop|status)((?: --\w+)*)((?: fabricui[\w.-]*)+)")
        for name in match[2].split()
    }
    assert started
    assert not (told | started) - units


def test_each_file_of_ours_that_is_named_is_there():
    told = {
        (page, name.rstrip("/"))
        for page in TEXTS
        for line in typed(page)
        for name in re.findall(r"(?<![\w./-])((?:[a-z]+/)+[\w.-]+|[A-Z]+\.md)(?![\w*/])", line)
        if name.split("/")[0] in TOPS and not name.endswith(".jsonl")  # which lie in the data folder
    }
    assert len(told) > 60
    assert not sorted(f"{page}: {name}" for page, name in told if not (ROOT / name).exists())


def slug(heading):
    """The anchor of a heading, as GitHub and GitLab make it."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def test_each_link_between_documents_leads_somewhere():
    wrong, links = [], 0
    for page in TEXTS:
        for target in re.findall(r"\]\((?!https?:)([^)\s]+)\)", TEXTS[page]):
            links += 1
            path, _, anchor = target.partition("#")
            file = (ROOT / page).parent / path if path else ROOT / page
            if not file.exists():
                wrong.append(f"{page}: {target}: no such file")
            elif anchor and anchor not in map(slug, re.findall(r"^#+ (.*)$", file.read_text(encoding="utf-8"), re.M)):
                wrong.append(f"{page}: {target}: no such heading")
    assert links > 60
    assert not wrong, "\n".join(wrong)
