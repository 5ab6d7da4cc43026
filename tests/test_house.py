"""The house rules that a linter cannot see: string imports, complete docs, avoided words, sizes."""

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# Top to bottom, as ARCHITECTURE.md draws it; rooms of one floor share a number.
FLOORS = {
    "lab": 12, "fabricui": 11, "portal": 10, "console": 9, "probes": 8, "partitions": 7, "deploy": 6, "inventory": 5,
    "live": 4, "webhooks": 4, "people": 3, "audit": 2, "remote": 2, "subnet": 1,
}  # fmt: skip
# settings.AUTH_USER_MODEL and these names of Django's apps are no upward imports.
STRING_IMPORT = re.compile(rf"\A({'|'.join(FLOORS)})(\.[A-Za-z_][A-Za-z0-9_.]*|:[a-z_-]+)\Z")


def tracked(*patterns: str) -> list[Path]:
    """The tracked and not yet committed files that match."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *patterns],
        cwd=ROOT, check=True, capture_output=True, text=True,
    )  # fmt: skip
    return [ROOT / line for line in listed.stdout.splitlines() if (ROOT / line).exists()]


def product_files() -> list[Path]:
    return [path for path in tracked("*.py") if path.relative_to(ROOT).parts[0] in FLOORS]


def strings_of(tree: ast.AST) -> list[tuple[int, str]]:
    """String constants with their line, docstrings left out."""
    docstrings = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                docstrings.add(id(first.value))
    return [
        (node.lineno, node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings
    ]


def upward_strings(source: str, room: str) -> list[tuple[int, str]]:
    """Strings in `source` that name a room above `room`: a model, a url or a task reached upward."""
    found = []
    for line, text in strings_of(ast.parse(source)):
        match = STRING_IMPORT.match(text)
        if match and FLOORS[match[1]] > FLOORS[room]:
            found.append((line, text))
    return found


def test_no_string_imports_upward():
    bad = [
        f"{path.relative_to(ROOT)}:{line}: {text!r}"
        for path in product_files()
        # A room tells Django its own name; fabricui is the wiring and sees all.
        for line, text in upward_strings(path.read_text(encoding="utf-8"), path.relative_to(ROOT).parts[0])
        if text != "fabricui.settings"
    ]
    assert not bad, "names of higher rooms in strings:\n" + "\n".join(bad)


def test_the_check_of_strings_sees_an_upward_one():
    assert upward_strings('reverse("console:board")', "deploy") == [(1, "console:board")]
    assert upward_strings('ForeignKey("partitions.Partition")', "inventory") == [(1, "partitions.Partition")]
    assert upward_strings('task("deploy.tasks.tick")', "console") == []


def test_templates_link_only_to_rooms_below_or_their_own():
    bad = []
    for path in tracked("templates/*.html"):
        room = path.relative_to(ROOT / "templates").parts[0]
        floor = FLOORS.get({"account": "people"}.get(room, room), FLOORS["fabricui"])
        for name in re.findall(r"""{%\s*url\s+["']([a-z_]+):""", path.read_text(encoding="utf-8")):
            if FLOORS.get(name, 0) > floor:
                bad.append(f"{path.relative_to(ROOT)} links up to {name}")
    assert not bad, "\n".join(bad)


def test_every_room_is_in_architecture():
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    tops = {path.relative_to(ROOT).parts[0] for path in tracked() if len(path.relative_to(ROOT).parts) > 1}
    missing = sorted(top for top in tops - {".ci"} if f"`{top}`" not in text and f"`{top}/`" not in text)
    assert not missing, f"ARCHITECTURE.md says nothing of {missing}"


def test_every_setting_is_documented():
    names = set()
    for path in product_files():
        if path.name == "settings.py":
            names |= set(re.findall(r"""environment\.\w+\(\s*["']([A-Z_]+)["']""", path.read_text(encoding="utf-8")))
    assert names, "no setting was found: the check looks in the wrong place"
    documented = (ROOT / "docs/settings.md").read_text(encoding="utf-8")
    assert not sorted(name for name in names if f"`{name}`" not in documented)


def test_every_audit_action_and_rollout_state_is_documented():
    from audit.actions import Action
    from deploy.models import Rollout

    actions = (ROOT / "docs/audit.md").read_text(encoding="utf-8")
    assert not [action.value for action in Action if f"`{action.value}`" not in actions]
    operating = (ROOT / "docs/operating.md").read_text(encoding="utf-8")
    assert not [state for state in Rollout.State.values if f"\n### {state}\n" not in operating]


@pytest.mark.parametrize("question", ["True now", "FabricUI", "You"])
def test_the_page_for_people_on_call_answers_in_every_state(question):
    from deploy.models import Rollout

    operating = (ROOT / "docs/operating.md").read_text(encoding="utf-8")
    sections = {part.split("\n", 1)[0]: part for part in operating.split("\n### ")[1:]}
    silent = [
        state
        for state in Rollout.State.values
        if not re.search(rf"^\*\*{question}:\*\* \S", sections.get(state, "").split("\n## ")[0], re.MULTILINE)
    ]
    assert not silent, f"docs/operating.md does not say “{question}” for {silent}"


def test_every_audit_action_is_recorded_somewhere():
    from audit.actions import Action
    from deploy.models import Rollout

    # The worker names these by the state it moves to; `start` records the first state.
    by_state = {Action.of_rollout(state) for state in Rollout.State.values if state != Rollout.State.QUEUED}
    sources = "\n".join(path.read_text(encoding="utf-8") for path in product_files() if path.name != "actions.py")
    never = [one.name for one in Action if one not in by_state and not re.search(rf"\bAction\.{one.name}\b", sources)]
    assert not never, f"docs/audit.md promises what nothing records: {never}"


def test_every_command_of_run_is_in_the_readme():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for command in ("./run demo", "./run test", "./run lab down", "./run doctor", "./run up"):
        assert command in text


AVOIDED = {
    # field's word: words that mean something else here (docs/glossary.md)
    "master/standby": r"\b(slave|primary SM|secondary SM)\b",
    "P_Key": r"\bVLAN\b",
    "HCA": r"\bNIC\b",
    "place": r"\b(apply|applied|applies) the (file|config|configuration|revision|plan)\b",
    "drift": r"\bout of sync\b",
    "tenant": r"\bcustomer_id\b",
}


@pytest.mark.parametrize(("use", "pattern"), AVOIDED.items())
def test_avoided_words(use, pattern):
    bad = []
    for path in [*product_files(), *tracked("templates/*.html", "*.md")]:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if re.search(pattern, line, re.IGNORECASE) and "glossary" not in path.name:
                bad.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()}")
    assert not bad, f"write {use}:\n" + "\n".join(bad)


def test_no_room_without_a_name_and_none_too_large():
    for path in [*product_files(), *tracked("tests/*.py")]:
        assert path.stem not in {"utils", "helpers", "common", "misc", "services"}, path
        if "migrations" not in path.parts:
            lines = len(path.read_text(encoding="utf-8").splitlines())
            # Those are copied to servers, or to an auditor, one file each.
            most = {"agent.py": 600, "on_host.py": 1100, "verifier.py": 670}.get(path.name, 400)
            assert lines <= most, f"{path.relative_to(ROOT)} has {lines} lines: split it by noun"


def test_every_module_has_a_sign_on_the_door():
    missing = [
        str(path.relative_to(ROOT))
        for path in product_files()
        if "migrations" not in path.parts
        and path.read_text(encoding="utf-8").strip()
        and not ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert not missing


def test_changelog_and_versions_agree():
    version = re.search(r'^version = "(.+)"', (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE)
    assert version
    assert f"## {version[1]}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_locks_hold_no_addresses():
    for path in (ROOT / "requirements").glob("*.txt"):
        text = path.read_text(encoding="utf-8")
        assert "--hash=sha256:" in text
        assert "://" not in text


def test_commit_subjects_are_short_sentences():
    log = subprocess.run(
        ["git", "log", "--format=%s", "-n", "200"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    bad = [
        subject
        for subject in log.stdout.splitlines()
        if len(subject) > 72 or subject.endswith(".") or not subject[:1].isupper()
    ]
    assert not bad, bad
