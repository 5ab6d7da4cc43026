"""`python -m lab.screenshots FOLDER`: each of the operator's pages as a picture, to be looked at.

Pages × (wide and light, wide and dark, narrow and light), with the rows of a large site, and wide and light on an empty
database. Needs chromium and no lab: rows of its own, and the web process as `./run up` starts it.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from lab.bench_board import FLAGS, PARTITIONS, environment, pins_of, signed_in, web

LOOKS: Final = {"light": ("light", 1400), "dark": ("dark", 1400), "narrow": ("light", 390)}
PAGES: Final = {
    "home": "/", "board": "/board/", "plan": "/plan/?selection=all", "rollouts": "/rollouts/", "servers": "/servers/",
    "managers": "/managers/", "drift": "/drift/", "partitions": "/partitions/", "probes": "/probes/",
    "audit": "/audit/", "first-steps": "/first-steps/", "glossary": "/glossary/", "conflicts": "/conflicts/",
    "leaves": "/leaves/", "strays": "/strays/", "enrolment": "/enrolment/", "labels": "/labels/",
    "not-found": "/nonsense/", "no-such-filter": "/servers/?q=colour:red",
}  # fmt: skip
SITES: Final = ("large", "empty")


def main() -> None:
    """Make the pictures of both sites; a process each, because each has a database of its own."""
    parser = argparse.ArgumentParser(prog="python -m lab.screenshots", description=__doc__)
    parser.add_argument("folder", type=Path, help="where the pictures go; made if it is not there")
    parser.add_argument("--servers", type=int, default=5_000, help="of the large site")
    parser.add_argument("--language", default="en", help="what the browser asks for, such as ru")
    parser.add_argument("--site", choices=SITES, help="only this one")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    if arguments.site:
        _take(arguments)
        return
    for site in SITES:
        subprocess.run([sys.executable, "-m", "lab.screenshots", *sys.argv[1:], "--site", site], check=True)


def _take(arguments: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory(prefix="fabricui-pictures-") as folder:
        os.environ.update(environment(Path(folder)))
        person = _fill(Path(folder), arguments)
        _, session = signed_in(person)
        looks = LOOKS if arguments.site == "large" else {"light": LOOKS["light"]}
        with web() as address:
            for name in _shoot(address, session, _pages(arguments.site), looks, arguments):
                print(name, flush=True)


def _fill(folder: Path, arguments: argparse.Namespace) -> Any:
    """Tables, rows of a large site or none, and somebody who may look."""
    import django
    from django.core.management import call_command

    (folder / "staticfiles").mkdir()
    django.setup()
    call_command("migrate", verbosity=0, interactive=False)
    call_command("collectstatic", verbosity=0, interactive=False)
    from lab import board_rows
    from people.models import User

    if arguments.site == "large":
        return board_rows.fill(servers=arguments.servers, hcas=8, partitions=PARTITIONS).olga
    return User.objects.create(username="olga", first_name="Olga", role=User.Role.OPERATOR)


def _pages(site: str) -> dict[str, str]:
    """Each page's name and address; those of one thing only where there is one."""
    if site == "empty":
        return dict(PAGES)
    from django.urls import reverse

    from inventory.models import ManagerHost, Server, Subnet
    from partitions.models import Partition

    one = {"server": Server, "partition": Partition, "manager": ManagerHost, "qualification": Subnet}
    pages = {
        name: reverse(f"console:{name}", args=[model.objects.order_by("pk").first().public_id])  # type: ignore[attr-defined]
        for name, model in one.items()
    }
    return PAGES | {"board-open": f"/board/?open={pins_of()}", "board-search": "/board/?q=state:staged"} | pages


def _shoot(
    address: str,
    session: Mapping[str, str],
    pages: Mapping[str, str],
    looks: Mapping[str, tuple[str, int]],
    arguments: argparse.Namespace,
) -> Iterator[str]:
    """Take them; gives the name of each file."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        raise RuntimeError("Pictures need chromium. Install Debian's package chromium.")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS.split())
        for look, (scheme, width) in looks.items():
            context = browser.new_context(
                viewport={"width": width, "height": 900}, color_scheme=scheme, locale=arguments.language  # type: ignore[arg-type]
            )  # fmt: skip
            context.add_cookies([{**session, "url": address}])  # type: ignore[typeddict-item]
            page = context.new_page()
            page.set_default_timeout(60_000)
            for name, path in pages.items():
                page.goto(address + path)
                file = f"{arguments.site}-{name}-{look}-{arguments.language}.png"
                page.screenshot(path=arguments.folder / file)
                yield file
            context.close()
        browser.close()


if __name__ == "__main__":
    main()
