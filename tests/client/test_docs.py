"""docs/client.md: its example is what is printed, its tables are the code's, its one file runs alone."""

import re
import shutil
import subprocess
import sys
import zipapp
from pathlib import Path

import pytest

from fabricui.client import configuration
from fabricui.client.failures import Exit
from tests.client.test_commands import settle

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "client.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^\$ fabricui (.+)\n((?:(?!\$|```).*\n)*)", TEXT, re.MULTILINE)


@pytest.mark.django_db
def test_the_example_prints_what_the_docs_say(shell, operator, site):
    assert len(EXAMPLES) == 3
    shell.as_(operator).while_sleeping = settle(site)
    for words, said in EXAMPLES:
        code, out, err = shell(*[word.strip('"') for word in re.findall(r'"[^"]*"|\S+', words)])
        assert code == 0, err
        pattern = re.escape(said).replace("…", "(?s:.*)")
        assert re.match(pattern, out), (pattern, out)


def test_every_exit_code_has_its_row():
    assert {int(code) for code in re.findall(r"^\| (\d+) \|", TEXT, re.MULTILINE)} == {int(code) for code in Exit}


def test_every_word_of_the_configuration_has_its_row():
    rows = set(re.findall(r"^\| `FABRICUI_\w+` \| (?:`(\w+)`|–) \|", TEXT, re.MULTILINE)) - {""}
    assert rows == set(configuration._KNOWN)


def test_one_file_of_it_runs_alone(tmp_path):
    build = tmp_path / "build"
    shutil.copytree(ROOT / "fabricui" / "client", build / "fabricui" / "client")
    (build / "fabricui" / "__init__.py").touch()
    one = tmp_path / "fabricui.pyz"
    zipapp.create_archive(build, one, main="fabricui.client.__main__:run")
    command = [sys.executable, "-I", "-S", str(one), "servers"]  # no packages, no environment of Python
    done = subprocess.run(
        command, capture_output=True, text=True, env={"HOME": str(tmp_path)}, cwd=tmp_path, timeout=60
    )
    assert done.returncode == 2
    assert done.stderr.startswith("fabricui: Where FabricUI is, is not known. Set FABRICUI_URL")


def test_in_the_package_too_nothing_else_is_imported():
    program = (
        "import sys, fabricui.client.command_line\n"
        "print(sorted({'django', 'celery', 'rest_framework', 'requests'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, timeout=60)
    assert done.stdout.strip() == "[]", done.stderr


def test_it_is_python_3_11():
    files = sorted((ROOT / "fabricui" / "client").glob("*.py"))
    command = [Path(sys.executable).parent / "vermin", "--no-tips", "--violations", "-t=3.11-", *files]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout
