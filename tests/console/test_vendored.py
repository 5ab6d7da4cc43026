"""The vendored files are what the lock says, and the pages use nothing that is not there."""

import io
import re
import shutil
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from fabricui import vendored

ROOT = Path(__file__).resolve().parents[2]
VENDOR = ROOT / "static" / "vendor"


@pytest.fixture
def folder(tmp_path):
    """A copy that a test may spoil."""
    return Path(shutil.copytree(VENDOR, tmp_path / "vendor"))


def test_the_committed_files_are_what_the_lock_says():
    assert list(vendored.problems(VENDOR)) == []
    call_command("vendor", check=True)


def test_a_changed_file_is_named(folder):
    (folder / "htmx" / "htmx.min.js").write_bytes(b"// changed")
    assert [text.split(" ")[0] for text in vendored.problems(folder)] == ["htmx/htmx.min.js"]


def test_a_missing_file_and_a_stranger_are_named(folder):
    (folder / "sortable" / "LICENSE").unlink()
    (folder / "extra.js").write_text("")
    told = " ".join(vendored.problems(folder))
    assert "sortable/LICENSE of sortablejs" in told
    assert "extra.js is not named in vendor.lock" in told


def test_the_command_fails_on_a_spoilt_folder(folder, settings):
    settings.BASE_DIR = folder.parent
    (folder.parent / "static").mkdir()
    shutil.move(folder, folder.parent / "static" / "vendor")
    (folder.parent / "static" / "vendor" / "vendor.lock").write_text("{")
    with pytest.raises(CommandError, match="cannot be read"):
        call_command("vendor", check=True)


def test_another_tarball_than_the_locked_one_is_refused():
    with pytest.raises(vendored.VendorProblem, match="Do not use it before you know why"):
        vendored.unpack(vendored.load_lock(VENDOR)[0], b"something else")


def test_a_locked_tarball_gives_its_files_and_says_what_it_lacks():
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        member = tarfile.TarInfo("package/dist/a.js")
        member.size = 3
        archive.addfile(member, io.BytesIO(b"abc"))
    tarball = buffer.getvalue()
    file = vendored.VendoredFile("x/a.js", "dist/a.js", "")
    package = vendored.Package("x", "1", vendored.integrity(tarball), "MIT", (file,))
    assert vendored.unpack(package, tarball) == {"x/a.js": b"abc"}
    with pytest.raises(vendored.VendorProblem, match=r"has no file dist/b\.js"):
        vendored.unpack(replace(package, files=(replace(file, source="dist/b.js"),)), tarball)


def test_the_sprite_is_drawn_from_the_icons():
    assert (VENDOR / vendored.SPRITE).read_bytes() == vendored.sprite(VENDOR)


def test_every_icon_that_a_page_names_is_there_and_none_is_idle():
    have = {path.stem for path in (VENDOR / "icons").glob("*.svg")} - {"sprite"}
    templates = " ".join(path.read_text() for path in (ROOT / "templates").rglob("*.html"))
    named = set(re.findall(r'{% icon "([a-z0-9-]+)"', templates))
    code = (ROOT / "console" / "lamps.py").read_text() + (ROOT / "console" / "frame.py").read_text()
    code += (ROOT / "console" / "columns.py").read_text()
    assert named <= have
    assert {name for name in have if f'"{name}"' not in code} <= named


def test_every_licence_is_kept():
    for package in vendored.load_lock(VENDOR):
        assert any(item.path.endswith("LICENSE") for item in package.files), package.name


def test_rules_are_left_out_by_a_part_of_their_selector_and_nothing_else_is_touched():
    style = b'@charset "x";a:hover,b:is(c:has(d),e),f{g:h}@media (i){j:has(k){l:m}n{o:p}}q:not(r,s:has(t)),u{v:w}'
    assert vendored.without(style, ":has(") == b'@charset "x";a:hover,f{g:h}@media (i){n{o:p}}u{v:w}'
    assert vendored.without(style, "nowhere") == style


def test_no_vendored_style_asks_what_an_element_has():
    """Each such selector is matched anew at every change of a board of 5,000 cards (ADR 56)."""
    assert [path.name for path in VENDOR.rglob("*.css") if ":has(" in path.read_text(encoding="utf-8")] == []
