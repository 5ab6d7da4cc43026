"""What axe finds on the page as it is shown now."""

from collections.abc import Collection

from axe_playwright_python.sync_playwright import Axe

TAGS = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa")
OF_COLOURS = ("color-contrast", "link-in-text-block")  # all that another scheme can break


def violations(page, *, only: Collection[str] = ()) -> list[str]:
    """A line for each; with `only`, of these rules."""
    found = Axe().run(page, options={"runOnly": list(only or TAGS), "resultTypes": ["violations"]})
    return [
        f"{rule['id']}: {node['html'][:160]} {node['failureSummary'][:200]}"
        for rule in found.response["violations"]
        for node in rule["nodes"]
    ]
