"""Where FabricUI is and with which token: what is taken, and that an open file or an open line is refused."""

import pytest

from fabricui.client import configuration
from fabricui.client.failures import Exit, Failure

TOKEN = "fui_canary0123456789"


def read(tmp_path, *, file="", mode=0o600, **named):
    environment = {"HOME": str(tmp_path), **{f"FABRICUI_{name}": value for name, value in named.items()}}
    if file:
        path = tmp_path / configuration.USUAL_FILE
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(file, encoding="utf-8")
        path.chmod(mode)
    return configuration.read(environment)


def refusal(tmp_path, **said):
    with pytest.raises(Failure) as raised:
        read(tmp_path, **said)
    assert raised.value.exit_code is Exit.USAGE
    assert TOKEN not in str(raised.value.as_json())
    return raised.value.sentence


def test_the_environment_goes_before_the_file(tmp_path):
    file = f'url = "https://file.example.com"\ntoken = "{TOKEN}"\ntimeout_s = 5\n'
    found = read(tmp_path, file=file)
    assert (found.url, found.token, found.timeout_s) == ("https://file.example.com", TOKEN, 5)
    assert TOKEN not in repr(found)
    assert read(tmp_path, URL="https://other.example.com/").url == "https://other.example.com"


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o620])
def test_an_open_file_is_refused_with_how_to_mend_it(tmp_path, mode):
    file = f'url = "https://a.example.com"\ntoken = "{TOKEN}"\n'
    assert "chmod 600" in refusal(tmp_path, file=file, mode=mode)
    token_file = tmp_path / "token"
    token_file.write_text(TOKEN)
    token_file.chmod(mode)
    assert "chmod 600" in refusal(tmp_path, file="# none\n", URL="https://a.example.com", TOKEN_FILE=str(token_file))
    token_file.chmod(0o600)
    assert read(tmp_path, URL="https://a.example.com", TOKEN_FILE=str(token_file)).token == TOKEN


@pytest.mark.parametrize("url", [
    "http://fabricui.example.com", "http://10.0.0.1", "ftp://a.example.com", "a.example.com", "https://", "https://a:b",
    "https://user:pw@a.example.com", "https://a.example.com/?x=1", "https://a.example.com/#x", "https://bücher.example",
])  # fmt: skip
def test_an_address_that_is_none_or_not_safe(tmp_path, url):
    assert "https://" in refusal(tmp_path, URL=url, TOKEN=TOKEN)


@pytest.mark.parametrize("url", ["http://127.0.0.1:8000", "http://localhost:8000/", "http://[::1]:8000/api/v1"])
def test_plain_http_on_this_machine(tmp_path, url):
    assert read(tmp_path, URL=url, TOKEN=TOKEN).is_loopback


@pytest.mark.parametrize("file", [
    f'url = "https://a.example.com"\ntoken = {TOKEN}\n', f'tokn = "{TOKEN}"\n', 'url = 7\ntoken = "x"\n', "url = \n",
    'url = "https://a.example.com"\ntoken = "a b"\n', 'url = "https://a.example.com"\n', 'token = "x"\n',
    'url = "https://a.example.com"\ntoken = "x"\ntimeout_s = 0\n',
])  # fmt: skip
def test_a_file_that_is_not_right(tmp_path, file):
    assert refusal(tmp_path, file=file)
