"""What a Russian operator sees and hears in the browser: the scripts' sentences, plurals, and no English announced."""

import re

import pytest
from playwright.sync_api import expect

from inventory.models import Port, PortConflict
from people.models import User
from tests.browser.test_board import card, cards, drag, tab_to_a_card

pytestmark = pytest.mark.browser


@pytest.fixture
def board(site, page, live_server):
    """Olga's board in Russian."""
    User.objects.filter(pk=site.provider.olga.pk).update(language="ru")
    page.goto(f"{live_server.url}/board/")
    return page


def test_a_drag_is_announced_in_russian(site, board):
    server = site.provider.servers[0]
    drag(board, card(board, site.training, server), cards(board, site.inference))
    expect(board.locator("#announcer")).to_have_text(
        "Подготовлен перенос srv-001 в inference. На фабрику ничего не попало."
    )
    expect(board.locator("#tray-text")).to_contain_text("1 сервер, 2 порта подготовлено")


def test_a_refused_drag_says_why_in_russian(site, board):
    first, second = site.provider.servers[:2]
    port = Port.objects.filter(hca__server=first).first()
    PortConflict.objects.create(port=port, claimed_by=second, claim={})
    assert drag(board, card(board, site.training, first), cards(board, site.research)).status == 409
    refusal = card(board, site.training, first).locator(".card-refusal")
    expect(refusal).to_contain_text("srv-002")
    said = board.locator("#announcer")
    expect(said).to_contain_text("Не перемещено: ")
    expect(said).to_contain_text("srv-002")


def test_the_keyboard_speaks_russian(site, board):
    board.keyboard.press("/")
    tab_to_a_card(board)
    name = board.evaluate("document.activeElement.dataset.name")
    said = board.locator("#announcer")
    board.keyboard.press("Enter")
    expect(said).to_have_text(f"Взято: {name}. Выберите раздел стрелками, Enter — положить, Escape — отпустить.")
    board.keyboard.press("ArrowRight")
    expect(said).to_have_text(re.compile(r"^Над [\w-]+(, \w+)?\.$"))
    board.keyboard.press("Escape")
    expect(said).to_have_text("Отпущено. Ничего не перемещено.")
    board.keyboard.press("x")
    expect(said).to_have_text("Выбран 1 сервер")
    board.keyboard.press("Escape")
    expect(said).to_have_text("Ничего не выбрано")


def test_counts_have_their_russian_forms(board):
    """By the browser's own rules, which are the catalogue's."""
    forms = board.evaluate(
        """async () => {
          const { counted } = await import("/static/js/words.js");
          return [0, 1, 2, 4, 5, 11, 12, 14, 21, 22, 25, 101, 111, 112]
            .map((n) => counted("{n} server", "{n} servers", n));
        }"""
    )
    assert forms == [
        "0 серверов", "1 сервер", "2 сервера", "4 сервера", "5 серверов", "11 серверов", "12 серверов", "14 серверов",
        "21 сервер", "22 сервера", "25 серверов", "101 сервер", "111 серверов", "112 серверов",
    ]  # fmt: skip


def test_a_search_counts_in_russian_and_an_empty_column_says_so(site, board):
    board.keyboard.press("/")
    board.keyboard.type("srv-001")
    expect(board.locator("#search-count")).to_have_text("1 из 6 серверов")
    empty = "one => getComputedStyle(one, '::after').content"
    assert cards(board, site.inference).evaluate(empty) == '"Нет подходящих серверов"'


def test_the_move_dialog_is_russian(site, board):
    server = site.provider.servers[0]
    board.keyboard.press("/")
    board.keyboard.type("srv-001")
    expect(board.locator("#search-count")).to_have_text("1 из 6 серверов")
    board.keyboard.press("ArrowDown")
    expect(card(board, site.training, server)).to_be_focused()
    board.keyboard.press("m")
    expect(board.locator("#move-source")).to_have_text(re.compile(r"^Сейчас в training \(0x[0-9a-f]{4}\)\.$"))
    expect(board.locator("#move-kind")).to_have_text("Сделать ограниченным в training")
    expect(board.locator("#move-keep-label")).to_have_text("Оставить и в training")
    expect(board.locator("#move-list")).not_to_contain_text(re.compile("out of every|joins"))


def test_a_server_that_does_not_answer_is_told_in_russian(site, board):
    server = site.provider.servers[0]
    board.route("**/board/move/", lambda route: route.abort())
    source = card(board, site.training, server)
    source.hover(position={"x": 60, "y": 36})
    source.drag_to(
        cards(board, site.inference), source_position={"x": 60, "y": 36}, target_position={"x": 100, "y": 40}
    )
    refusal = card(board, site.training, server).locator(".card-refusal")
    expect(refusal).to_contain_text("Сервер не ответил")
    expect(refusal.get_by_role("button")).to_have_text("Понятно")
    expect(board.locator("#announcer")).to_contain_text("Не перемещено: Сервер не ответил")
    board.wrong[:] = [text for text in board.wrong if not re.search("ERR_FAILED|Failed to fetch", text)]
