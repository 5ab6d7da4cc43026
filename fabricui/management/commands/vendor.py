"""`manage.py vendor`: fetch the vendored files again; with `--check`, only say whether they are what the lock says."""

import subprocess
import tempfile
from argparse import ArgumentParser
from dataclasses import replace
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from fabricui import vendored


class Command(BaseCommand):
    """Make static/vendor what vendor.lock says, or check that it is."""

    help = "Copy the vendored files from npm packages into static/vendor, or check them with --check."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--check", action="store_true", help="compare the files with the lock; needs no network")

    def handle(self, *args: Any, check: bool, **options: Any) -> None:
        folder = Path(settings.BASE_DIR) / "static" / "vendor"
        try:
            if not check:
                _copy(folder)
            found = list(vendored.problems(folder))
        except vendored.VendorProblem as problem:
            raise CommandError(str(problem)) from problem
        if found:
            raise CommandError("\n".join(found))
        self.stdout.write(f"The files in {folder} are what {vendored.LOCK_NAME} says.")


def _copy(folder: Path) -> None:
    """Fetch each package with npm, check its integrity, copy its files, draw the sprite, and write the lock anew."""
    packages = []
    for package in vendored.load_lock(folder):
        files = vendored.unpack(package, _npm_pack(package))
        for path, data in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(data)
        packages.append(package)
    (folder / vendored.SPRITE).write_bytes(vendored.sprite(folder))
    hashed = tuple(
        replace(
            package,
            files=tuple(
                replace(item, sha256=vendored.sha256((folder / item.path).read_bytes())) for item in package.files
            ),
        )
        for package in packages
    )
    (folder / vendored.LOCK_NAME).write_text(vendored.lock_text(hashed), encoding="utf-8")


def _npm_pack(package: vendored.Package) -> bytes:
    """The tarball of the package as npm fetches it."""
    with tempfile.TemporaryDirectory() as empty:
        command = ["npm", "pack", "--silent", "--pack-destination", empty, f"{package.name}@{package.version}"]
        try:
            done = subprocess.run(command, cwd=empty, capture_output=True, text=True, timeout=300, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise vendored.VendorProblem(f"npm cannot be run: {error}. Install Node.js, then try again.") from error
        tarballs = list(Path(empty).glob("*.tgz"))
        if done.returncode or len(tarballs) != 1:
            raise vendored.VendorProblem(f"npm pack {package.name}@{package.version} failed: {done.stderr.strip()}")
        return tarballs[0].read_bytes()
