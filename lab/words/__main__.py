"""`python -m lab.words`: find what there is to translate, keep what is translated, compile, and say what lacks."""

import os
import sys

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "fabricui.settings")
os.environ.setdefault("FABRICUI_SECRET_KEY", "only-for-reading-the-sources")


def main() -> int:
    """Bring locale/ru up to date; 1 while something is not translated."""
    django.setup()
    from lab.words import catalogue, scripts
    from lab.words.messages import ROOT, found

    folder = ROOT / "locale/ru/LC_MESSAGES"
    po, mo = folder / "django.po", folder / "django.mo"
    known = catalogue.read(po) if po.exists() else {}
    places = found()
    empty = {None: ("",)}
    translations = {
        one: known.get(one, ("",) * catalogue.FORMS if one.plural is not None else empty[None]) for one in places
    }
    catalogue.write(po, translations, places)
    mo.write_bytes(catalogue.compiled(translations))
    (scripts.WRITTEN / "ru.js").write_text(scripts.module("ru", translations), encoding="utf-8")
    lacking = [one for one, forms in translations.items() if not all(forms)]
    print(f"{len(translations)} messages, {len(lacking)} without a translation")
    for one in lacking[:20]:
        print(f"  {places[one][0]}: {one.english[:100]}")
    return 1 if lacking else 0


if __name__ == "__main__":
    sys.exit(main())
