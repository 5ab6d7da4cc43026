"""`pip install .` gives a working `fabricui`: what pyproject.toml says goes into the package is all that it needs.

The wheel itself needs setuptools, which the locks do not hold (nothing else needs it, and a test fetches nothing); so
the files that it would hold are put where pip would put them, and started as the console script starts them.
"""

import ast
import http.server
import importlib
import shutil
import subprocess
import sys
import threading
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PACKAGES = PROJECT["tool"]["setuptools"]["packages"]
# What pip writes as bin/fabricui, for the entry point of pyproject.toml.
SCRIPT = "import sys\nfrom {module} import {function}\nsys.exit({function}())\n"


@pytest.fixture
def installed(tmp_path):
    """A folder with the packages' modules and no more, and the console script beside it."""
    site = tmp_path / "site-packages"
    for package in PACKAGES:
        folder = site / package.replace(".", "/")
        folder.mkdir(parents=True)
        for file in (ROOT / package.replace(".", "/")).glob("*.py"):
            shutil.copy(file, folder)
    module, _, function = PROJECT["project"]["scripts"]["fabricui"].partition(":")
    script = tmp_path / "fabricui"
    script.write_text(f"sys_path = {str(site)!r}\nimport sys\nsys.path.insert(0, sys_path)\n"
                      + SCRIPT.format(module=module, function=function))  # fmt: skip

    def run(*words, **environment):
        command = [sys.executable, "-I", "-S", str(script), *words]  # no packages but these, and Python's own
        environment = {"HOME": str(tmp_path), **environment}
        return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path, timeout=60)

    return run


def test_the_console_script_starts_with_pythons_own_library_alone(installed):
    assert PROJECT["project"]["scripts"] == {"fabricui": "fabricui.client.__main__:run"}
    done = installed("--help")
    assert done.returncode == 0, done.stderr
    for verb in ("servers", "move", "plan", "rollout", "status", "audit", "activity"):
        assert verb in done.stdout


def test_it_asks_the_api_and_prints_what_it_answers(installed):
    asked = []

    class Api(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append((self.path, self.headers["Authorization"]))
            body = b'{"items": [], "next_cursor": null}'
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Api) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}"
        done = installed("servers", "--json", FABRICUI_URL=url, FABRICUI_TOKEN="fui_x")
        server.shutdown()
    assert (done.returncode, done.stderr) == (0, "")
    assert asked[0][0].startswith("/api/v1/servers")
    assert asked[0][1] == "Token fui_x"


def test_every_folder_of_the_client_is_in_the_package_and_nothing_but_modules_is_in_it():
    client = ROOT / "fabricui" / "client"
    files = [path for path in client.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert {path.suffix for path in files} == {".py"}, "a file that is no module needs package-data in pyproject.toml"
    folders = {".".join(path.parent.relative_to(ROOT).parts) for path in files}
    assert folders <= set(PACKAGES)


def test_the_client_imports_pythons_own_library_and_itself():
    for file in [ROOT / "fabricui" / "__init__.py", *(ROOT / "fabricui" / "client").glob("*.py")]:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            named = [one.name for one in node.names] if isinstance(node, ast.Import) else []
            named += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for name in named:
                known = name.split(".")[0] in sys.stdlib_module_names or name.startswith("fabricui.client")
                assert known, f"{file.name} imports {name}"


def test_what_it_says_of_itself_is_there():
    for name in ("readme", "license"):
        assert PROJECT["project"][name]
    assert (ROOT / PROJECT["project"]["readme"]).exists()
    assert importlib.import_module(PROJECT["project"]["scripts"]["fabricui"].partition(":")[0]).run
