"""docs/openapi.yaml as the code describes it. After a change: `python -m tests.api.openapi` writes it."""

from pathlib import Path

DOC = Path(__file__).resolve().parents[2] / "docs" / "openapi.yaml"


def described() -> dict:
    """The description as a value. Raises AssertionError for what drf-spectacular had to guess."""
    from drf_spectacular.drainage import GENERATOR_STATS
    from drf_spectacular.generators import SchemaGenerator
    from drf_spectacular.settings import spectacular_settings  # noqa: F401  read before the walk

    with GENERATOR_STATS.silence():
        schema = SchemaGenerator(urlconf="fabricui.urls").get_schema(request=None, public=True)
    guesses = [*GENERATOR_STATS._error_cache, *GENERATOR_STATS._warn_cache]
    assert not guesses, guesses
    return schema


def text() -> str:
    """The description as the file holds it."""
    from drf_spectacular.renderers import OpenApiYamlRenderer

    return OpenApiYamlRenderer().render(described(), renderer_context={}).decode()


if __name__ == "__main__":
    import os

    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "fabricui.settings")
    django.setup()
    DOC.write_text(text(), encoding="utf-8")
