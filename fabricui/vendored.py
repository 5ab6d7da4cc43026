"""The third-party files under static/vendor: which they are, where they come from, and whether they are still so.

`static/vendor/vendor.lock` is the truth: npm packages by version and integrity hash, and each committed file by
SHA-256. The files are committed, so neither a user nor the checks need node; only `manage.py vendor` runs npm.
"""

import base64
import hashlib
import io
import json
import re
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LOCK_NAME = "vendor.lock"
SPRITE = "icons/sprite.svg"
_ROOT_TAG = re.compile(r"<svg\b[^>]*>(?P<inside>.*)</svg>\s*\Z", re.DOTALL)
_EMPTY_FRAME = re.compile(r'\s*<path stroke="none" d="M0 0h24v24H0z" fill="none"\s*/>')

_RULE = re.compile(r"(?P<selectors>[^{}]+)\{(?P<what>[^{}]*)\}")


class VendorProblem(Exception):
    """A vendored file or package that is not what the lock says; the message says which and how to mend it."""


@dataclass(frozen=True, slots=True)
class VendoredFile:
    """One committed file; `source` is its path in the npm package, or None when it was written by hand.

    Rules of style whose selector contains `without` are left out of it ("" leaves the file as it is).
    """

    path: str
    source: str | None
    sha256: str
    without: str = ""


@dataclass(frozen=True, slots=True)
class Package:
    """One npm package with the few files that are taken from it."""

    name: str
    version: str
    integrity: str  # as npm prints it: sha512-<base64> of the tarball
    licence: str
    files: tuple[VendoredFile, ...]


def load_lock(folder: Path) -> tuple[Package, ...]:
    """The packages that `folder`/vendor.lock names; raise VendorProblem when it cannot be read."""
    try:
        value = json.loads((folder / LOCK_NAME).read_text(encoding="utf-8"))
        return tuple(_package(item) for item in value["packages"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise VendorProblem(
            f"{folder / LOCK_NAME} cannot be read: {error}. Restore it from version control."
        ) from error


def _package(value: Mapping[str, Any]) -> Package:
    files = tuple(
        VendoredFile(item["path"], item["from"], item["sha256"], item.get("without", "")) for item in value["files"]
    )
    return Package(value["name"], value["version"], value["integrity"], value["licence"], files)


def lock_text(packages: tuple[Package, ...]) -> str:
    """The content of vendor.lock for `packages`."""
    value = {
        "packages": [
            {
                "name": package.name,
                "version": package.version,
                "integrity": package.integrity,
                "licence": package.licence,
                "files": [_described(item) for item in package.files],
            }
            for package in packages
        ]
    }
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"


def _described(item: VendoredFile) -> dict[str, str | None]:
    value = {"path": item.path, "from": item.source, "sha256": item.sha256}
    return {**value, "without": item.without} if item.without else value


def problems(folder: Path) -> Iterator[str]:
    """One sentence for each file that is missing, changed, or not named in the lock."""
    named = {LOCK_NAME}
    for package in load_lock(folder):
        for item in package.files:
            named.add(item.path)
            path = folder / item.path
            if not path.is_file():
                yield f"{item.path} of {package.name} {package.version} is missing. Run manage.py vendor."
            elif sha256(path.read_bytes()) != item.sha256:
                yield f"{item.path} is not the file of {package.name} {package.version}. Run manage.py vendor."
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.relative_to(folder).as_posix() not in named:
            yield f"{path.relative_to(folder).as_posix()} is not named in {LOCK_NAME}. Name it there or remove it."


def unpack(package: Package, tarball: bytes) -> dict[str, bytes]:
    """The files of `package` by their path here; raise VendorProblem when the tarball is not the locked one."""
    found = integrity(tarball)
    if found != package.integrity:
        raise VendorProblem(
            f"npm gave {package.name} {package.version} with {found}; the lock says {package.integrity}. "
            "Do not use it before you know why."
        )
    taken: dict[str, bytes] = {}
    with tarfile.open(fileobj=io.BytesIO(tarball), mode="r:gz") as archive:
        for item in package.files:
            if item.source is None:
                continue
            try:
                member = archive.extractfile(f"package/{item.source}")
            except KeyError:
                member = None
            if member is None:
                raise VendorProblem(f"{package.name} {package.version} has no file {item.source}.")
            data = member.read()
            taken[item.path] = without(data, item.without) if item.without else data
    return taken


def without(style: bytes, part: str) -> bytes:
    """A minified style sheet without the selectors that contain `part`, nor the rules that had no others.

    `:has()` of a framework is paid at every change of a page, whether anything on it matches or not (ADR 56).
    """

    def kept(rule: re.Match[str]) -> str:
        selectors = [one for one in _selectors(rule["selectors"]) if part not in one]
        return f"{','.join(selectors)}{{{rule['what']}}}" if selectors else ""

    return _RULE.sub(kept, style.decode("utf-8")).encode("utf-8")


def _selectors(text: str) -> list[str]:
    """The selectors of a list; a comma inside of :is(…) or :not(…) is none of the list's."""
    found, depth = [""], 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and not depth:
            found.append("")
        else:
            found[-1] += letter
    return found


def sprite(folder: Path) -> bytes:
    """One SVG with a `<symbol>` for each icon beside it, in order of name; drawn with `currentColor`."""
    symbols = []
    for path in sorted((folder / SPRITE).parent.glob("*.svg")):
        if path.name == Path(SPRITE).name:
            continue
        match = _ROOT_TAG.search(path.read_text(encoding="utf-8"))
        if match is None:
            raise VendorProblem(f"{path.name} is not an SVG icon.")
        inside = " ".join(_EMPTY_FRAME.sub("", match["inside"]).split())
        symbols.append(f'<symbol id="{path.stem}" viewBox="0 0 24 24">{inside}</symbol>')
    return ('<svg xmlns="http://www.w3.org/2000/svg">\n' + "\n".join(symbols) + "\n</svg>\n").encode()


def sha256(data: bytes) -> str:
    """The SHA-256 of `data` in hex."""
    return hashlib.sha256(data).hexdigest()


def integrity(tarball: bytes) -> str:
    """The integrity of a tarball as npm prints it."""
    return "sha512-" + base64.b64encode(hashlib.sha512(tarball).digest()).decode()
