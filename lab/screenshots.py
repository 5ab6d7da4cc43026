"""`python -m lab.screenshots FOLDER`: every page as a picture, as long as it is, to be looked at.

Five sites, each a process with a database of its own: `busy` (something of everything), `quiet` (a good day), `empty`
(no subnet), `bare` (a subnet with nothing in it) and `large`. The pages are data (`lab/pictures/pages.py`), a picture
is named SITE-PAGE-LOOK.png. `--docs` makes those of `docs/pictures` anew, each named by its page and as long as the
screen. Needs chromium and no lab: rows of its own, and the web process as `./run up` starts it.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from lab.bench_board import FLAGS, PARTITIONS, environment, pins_of, signed_in, web
from lab.layout import repository
from lab.pictures.pages import PAGES, Page
from lab.pictures.scene import Scene
from lab.pictures.visit import visit

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@dataclass(frozen=True)
class Look:
    """One way to look at a page."""

    name: str
    scheme: str = "light"
    width: int = 1400
    language: str = "en"


LIGHT: Final = Look("light")
LOOKS: Final = (
    LIGHT, Look("dark", scheme="dark"), Look("tablet", width=768), Look("narrow", width=390), Look("ru", language="ru"),
)  # fmt: skip
EMPTY: Final = (LIGHT, Look("ru-narrow", width=390, language="ru"))
SITES: Final = {"busy": LOOKS, "quiet": LOOKS, "empty": EMPTY, "bare": EMPTY, "large": LOOKS[:4]}
HEIGHT: Final = 900
# What the documents show, of the good day; under 200 kB each (tests/lab/test_pictures.py).
DOCS: Final = {
    "board-open": Look("light", width=1280),
    "plan": Look("light", width=1280),
    "rollout": Look("dark", scheme="dark", width=1280),
    "probes-scope": Look("light", width=1280),
    "portal-server": Look("light", width=1280),
}
DOCS_HEIGHT: Final = 760


def main() -> None:
    """Make the pictures of each site; a process each, because each has a database of its own."""
    parser = argparse.ArgumentParser(prog="python -m lab.screenshots", description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", help="where the pictures go; made if it is not there")
    parser.add_argument("--docs", action="store_true", help="make the pictures of the documents anew, and no others")
    parser.add_argument("--servers", type=int, default=5_000, help="of the large site")
    parser.add_argument("--site", choices=SITES, help="only this one")
    parser.add_argument("--only", default="", help="only pages whose names hold this, such as rollout")
    parser.add_argument("--look", default="", help="only this look, such as dark")
    arguments = parser.parse_args()
    if arguments.docs:
        arguments.folder, arguments.site = repository() / "docs" / "pictures", "quiet"
    elif arguments.folder is None:
        parser.error("Name the folder where the pictures go, or --docs.")
    arguments.folder.mkdir(parents=True, exist_ok=True)
    if arguments.site:
        _take(arguments)
        return
    for site in SITES:
        subprocess.run([sys.executable, "-m", "lab.screenshots", *sys.argv[1:], "--site", site], check=True)


def _take(arguments: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory(prefix="fabricui-pictures-") as folder:
        # Whoever looks has just signed in, or every page of the second factor would ask who they are.
        os.environ.update(environment(Path(folder)) | {"FABRICUI_FRESH_LOGIN_MIN": "0"})
        if arguments.site == "quiet":  # its operator has a second factor, so no banner says that none is asked for
            os.environ["FABRICUI_MFA"] = "required"
        scene = _fill(Path(folder), arguments)
        with web() as address:
            for name in _shoot(address, scene, arguments):
                print(name, flush=True)


def _fill(folder: Path, arguments: argparse.Namespace) -> Scene:
    """Tables, rows of the site, and those who look."""
    import django
    from django.core.management import call_command

    (folder / "staticfiles").mkdir()
    django.setup()
    call_command("migrate", verbosity=0, interactive=False)
    call_command("collectstatic", verbosity=0, interactive=False)
    if arguments.site == "busy":
        from lab.pictures import busy, provider, settled

        return busy.fill(settled.settle(provider.build()))
    if arguments.site == "quiet":
        from lab.pictures import provider, quiet

        return quiet.fill(provider.build())
    if arguments.site == "bare":
        from lab.pictures import bare, provider

        return bare.fill(provider.build())
    if arguments.site == "empty":
        from lab.pictures import empty

        return empty.fill()
    from inventory.models import Server
    from lab import board_rows
    from partitions.models import Partition

    olga = board_rows.fill(servers=arguments.servers, hcas=8, partitions=PARTITIONS).olga
    one = {"server": Server.objects.earliest("pk"), "partition": Partition.objects.earliest("pk")}
    places: dict[str, list[object]] = {f"console:{name}": [row.public_id] for name, row in one.items()}  # type: ignore[attr-defined]
    return Scene({"olga": olga}, places, {"pins": pins_of()})


def _shoot(address: str, scene: Scene, arguments: argparse.Namespace) -> Iterator[str]:
    """Take them; gives the name of each file. A page is loaded once a language, and looked at in all ways."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        raise RuntimeError("Pictures need chromium. Install Debian's package chromium.")
    looks = [look for look in SITES[arguments.site] if arguments.look in ("", look.name)]
    pages = [page for page in PAGES[arguments.site] if arguments.only in page.name]
    if arguments.docs:
        looks, pages = [LIGHT], [page for page in pages if page.name in DOCS]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS.split())
        for language in dict.fromkeys(look.language for look in looks):
            for who in dict.fromkeys(page.who for page in pages):
                yield from _as_somebody(
                    browser, address, scene, arguments, who=who,
                    pages=[page for page in pages if page.who == who],
                    looks=[look for look in looks if look.language == language],
                )  # fmt: skip
        browser.close()


def _as_somebody(
    browser: "Browser",
    address: str,
    scene: Scene,
    arguments: argparse.Namespace,
    *,
    who: str,
    pages: list[Page],
    looks: list[Look],
) -> Iterator[str]:
    context = browser.new_context(locale=looks[0].language)
    if who:
        _, session = signed_in(scene.people[who])
        context.add_cookies([{**session, "url": address}])  # type: ignore[typeddict-item]
    tab = context.new_page()
    tab.set_default_timeout(60_000)
    for page in pages:
        tab.set_viewport_size({"width": looks[0].width, "height": HEIGHT})
        status = visit(tab, address, page, scene, language=looks[0].language)
        if status != page.status:
            raise RuntimeError(f"{page.name}: the answer was {status}")
        for look in [DOCS[page.name]] if arguments.docs else looks:
            # Without motion, or a button is caught half way between two schemes.
            tab.emulate_media(color_scheme=look.scheme, reduced_motion="reduce")  # type: ignore[arg-type]
            tab.set_viewport_size({"width": look.width, "height": DOCS_HEIGHT if arguments.docs else HEIGHT})
            file = f"{page.name}.png" if arguments.docs else f"{arguments.site}-{page.name}-{look.name}.png"
            tab.screenshot(path=arguments.folder / file, full_page=not arguments.docs)
            yield file
    context.close()


if __name__ == "__main__":
    main()
