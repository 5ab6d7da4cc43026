"""Hands: a person at the browser, whose actions are counted. Reading is not doing."""

from dataclasses import dataclass

from playwright.sync_api import Locator, Page


@dataclass
class Hands:
    """Everything a person does goes through here; a click, a key or chord, a field that is typed or chosen is one."""

    page: Page
    actions: int = 0

    def click(self, what: Locator) -> None:
        self.actions += 1
        what.click()

    def type(self, where: Locator, text: str) -> None:
        self.actions += 1
        where.fill(text)

    def choose(self, where: Locator, label: str) -> None:
        self.actions += 1
        where.select_option(label=label)

    def press(self, keys: str) -> None:
        self.actions += 1
        self.page.keyboard.press(keys)

    def menu(self, name: str) -> None:
        self.click(self.page.get_by_role("navigation", name="Main").get_by_role("link", name=name))
        self.page.wait_for_load_state()  # a page that is not loaded takes no key
