"""Who may ask a studio: the browser that was shown its token, under its own name, from its own pages."""

import hmac
import tempfile
import webbrowser
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ppspeech.cli import app
from ppspeech.errors import PpspeechError
from ppspeech.network import Address
from ppspeech.studio import Places, Studio
from ppspeech.studio.guard import BEARER, MOST_BODY
from ppspeech.studio.run import listening_at
from tests.studio.running import TOKEN, ask, own, running

pytestmark = pytest.mark.timeout(300)

ASKED = {"protocol": "train_average", "table": "breast_cancer", "parties": 1, "epsilon": 1}
"""What is understood and refused: whoever gets this answer got through."""


@pytest.fixture(scope="module")
def studio(bundles: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    with running(Places(tmp_path_factory.mktemp("work"), (bundles,))) as found:
        yield found


def test_no_command_line_has_the_token(studio: Studio, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other users of the machine see what a browser is started with, and no file of ours."""
    opened: list[str] = []

    def open_it(address: str) -> bool:
        opened.append(address)
        (shown,) = tmp_path.rglob("*.html")
        assert address == shown.as_uri()
        assert studio.entrance in shown.read_text("utf-8")
        assert shown.parent.stat().st_mode & 0o077 == 0
        return True

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(webbrowser, "open", open_it)
    monkeypatch.setattr("ppspeech.studio.run_studio", lambda _places, _address, ready: ready(studio))
    said = CliRunner().invoke(app, ["studio"])
    assert (said.exit_code, len(opened)) == (0, 1), said.output
    assert TOKEN not in opened[0]
    assert studio.entrance in said.output
    assert not list(tmp_path.iterdir())


def without(headers: dict[str, str], name: str) -> dict[str, str]:
    return {key: value for key, value in headers.items() if key != name}


def test_its_own_page_is_let_in(studio: Studio) -> None:
    assert ask(studio, "/speak").status == 200
    assert {each["name"] for each in ask(studio, "/api/models").plain} == {"animals", "broken", "margins", "sentences"}
    said = ask(studio, "/api/start/together", ASKED)
    assert (said.status, said.plain["error"]) == (400, "parties must be between 2 and 12, got 1")
    by_name = own(studio) | {
        "Host": f"localhost:{studio.address.port}",
        "Origin": f"http://localhost:{studio.address.port}",
    }
    assert ask(studio, "/api/start/together", ASKED, by_name).status == 400


@pytest.mark.parametrize(
    "shown", [None, "", TOKEN, BEARER, f"{BEARER}{TOKEN[:-1]}", f"{BEARER}{TOKEN}x", f"Basic {TOKEN}", f"bearer{TOKEN}"]
)
@pytest.mark.parametrize(
    "path", ["/api/models", "/api/jobs", "/api/speak", "/api/choices", "/api/jobs/speak-1/events", "/api/", "/none"]
)
def test_without_the_token_nothing_is_told(studio: Studio, path: str, shown: str | None) -> None:
    headers = without(own(studio), "Authorization") | ({} if shown is None else {"Authorization": shown})
    said = ask(studio, path, headers=headers)
    assert said.status == 401
    assert "open the studio by the address" in said.plain["error"]
    assert TOKEN not in said.body.decode()


@pytest.mark.parametrize("elsewhere", [{}, {"Cookie": f"ppspeech_studio={TOKEN}"}, {"X-Token": TOKEN}], ids=str)
def test_the_token_is_taken_from_its_header_alone(studio: Studio, elsewhere: dict[str, str]) -> None:
    """What a browser sends by itself, to whoever has another port of this host, lets nobody in."""
    headers = without(own(studio), "Authorization") | elsewhere
    assert ask(studio, f"/api/models?token={TOKEN}", headers=headers).status == 401


def test_two_tokens_are_none(studio: Studio) -> None:
    headers = own(studio) | {"authorization": f"{BEARER}x"}
    assert ask(studio, "/api/models", headers=headers).status in {400, 421}


@pytest.mark.parametrize("path", ["/", "/speak", "/train", "/client.js", "/studio/shell.js"])
def test_pages_are_the_same_for_everybody(studio: Studio, path: str) -> None:
    """They have nothing to tell, and are opened by links of other programs."""
    stranger = {"Host": str(studio.address), "Sec-Fetch-Site": "cross-site"}
    assert ask(studio, path, headers=stranger).body == ask(studio, path).body
    assert ask(studio, path, headers=stranger).status == 200
    assert ask(studio, path, ASKED).status == 405


def test_without_the_token_nothing_is_started(studio: Studio) -> None:
    for path in ("/api/start/together", "/api/speak", "/api/jobs/together-1/stop"):
        assert ask(studio, path, ASKED, without(own(studio), "Authorization")).status == 401
    assert ask(studio, "/api/jobs").plain == []


def test_the_token_is_where_browsers_send_it_to_nobody(studio: Studio) -> None:
    assert studio.entrance == f"http://{studio.address}/speak#token={TOKEN}"
    for path in ("/speak", "/api/models"):
        assert "set-cookie" not in ask(studio, path).headers


def test_tokens_are_compared_in_constant_time(studio: Studio, monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[tuple[bytes, bytes]] = []
    right = hmac.compare_digest
    monkeypatch.setattr(
        "ppspeech.studio.guard.hmac.compare_digest", lambda a, b: compared.append((a, b)) or right(a, b)
    )
    assert studio.guard.is_token(TOKEN)
    assert not studio.guard.is_token("b" + TOKEN[1:])
    assert not studio.guard.is_token("é")
    assert compared[:2] == [(TOKEN.encode(), TOKEN.encode()), (b"b" + TOKEN.encode()[1:], TOKEN.encode())]


@pytest.mark.parametrize(
    "host", ["studio.example", "127.0.0.1", "127.0.0.1:1", "localhost", "[::1]:80", "evil.example:{port}"]
)
@pytest.mark.parametrize("path", ["/speak", "/studio/shell.js", "/api/models"])
def test_another_name_is_refused(studio: Studio, host: str, path: str) -> None:
    """A name of a stranger that points here would make the stranger's page one of the studio's own."""
    said = ask(studio, path, headers=own(studio) | {"Host": host.format(port=studio.address.port)})
    assert said.status == 421


def test_two_hosts_are_none(studio: Studio) -> None:
    headers = own(studio) | {"host": "studio.example"}
    assert ask(studio, "/speak", headers=headers).status in {400, 421}
    assert ask(studio, "/speak", headers=without(own(studio), "Host")).status in {400, 421}


@pytest.mark.parametrize(
    "change",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Content-Type": "text/plain"},
        {"Content-Type": "application/x-www-form-urlencoded"},
    ],
    ids=str,
)
def test_another_page_may_not_ask(studio: Studio, change: dict[str, str]) -> None:
    said = ask(studio, "/api/start/together", ASKED, own(studio) | change)
    assert said.status == 403


def test_a_page_that_does_not_say_where_it_is_from_changes_nothing(studio: Studio) -> None:
    assert ask(studio, "/api/start/together", ASKED, without(own(studio), "Origin")).status == 403
    assert ask(studio, "/api/start/together", method="PUT").status == 405
    assert ask(studio, "/api/start/together").status == 405


@pytest.mark.parametrize("path", ["/speak", "/studio/shell.js", "/api/models", "/none"])
def test_every_answer_has_the_policy(studio: Studio, path: str) -> None:
    said = ask(studio, path)
    rules = dict(each.strip().partition(" ")[::2] for each in said.headers["content-security-policy"].split(";"))
    assert rules["default-src"] == "'none'"
    assert rules["script-src"] == "'self' 'wasm-unsafe-eval'"
    assert rules["style-src"] == rules["img-src"] == rules["connect-src"] == "'self'"
    assert rules["frame-ancestors"] == rules["base-uri"] == rules["form-action"] == "'none'"
    assert said.headers["x-content-type-options"] == "nosniff"
    assert said.headers["referrer-policy"] == "no-referrer"
    assert said.headers["cache-control"] == "no-store"
    assert "access-control-allow-origin" not in said.headers


def test_pages_have_no_script_or_style_inside_and_name_no_other_host(studio: Studio) -> None:
    for name in ("speak", "models", "train", "filters", "together"):
        html = ask(studio, f"/{name}").body.decode()
        assert html.count("<script") == 1
        assert f'<script type="module" src="/studio/{name}.js"></script>' in html
        assert "<style" not in html
        assert " style=" not in html
        assert " onclick=" not in html
        assert "http:" not in html
        assert "https:" not in html
        assert TOKEN not in html


@pytest.mark.parametrize(
    "path",
    [
        "/../app.py", "/studio/../app.py", "/studio/..%2fapp.py", "/studio/%2e%2e/app.py", "/studio/....//app.py",
        "/studio//etc/passwd", "/etc/passwd", "/studio/frame.html", "/studio/", "/api/runs/..%2f..%2fetc",
        "/api/runs/bundles", "/api/jobs/..%2f..%2fetc%2fpasswd/events", "/studio/shell.js%00.css",
    ],
)  # fmt: skip
def test_no_path_leads_elsewhere(studio: Studio, path: str) -> None:
    said = ask(studio, path)
    assert said.status == 404
    assert b"root:" not in said.body
    assert b"import" not in said.body


def test_a_request_is_small_and_json(studio: Studio) -> None:
    assert ask(studio, "/api/start/together", b"x" * (MOST_BODY + 1)).status == 413
    for body in (b"", b"{", b"\xff", b"[" * 10_000, b"nul", b'{"a": 1}', b"[1]", b'"x"'):
        said = ask(studio, "/api/start/together", body)
        assert said.status == 400, body
        assert said.plain["error"]


@pytest.mark.parametrize("address", [Address("0.0.0.0", 0), Address("192.0.2.1", 0), Address("studio.example", 0)])
def test_it_listens_for_this_machine_alone(address: Address) -> None:
    with pytest.raises(PpspeechError, match="listens on loopback"):
        listening_at(address)


def test_a_port_that_is_taken_is_named() -> None:
    with (
        listening_at(Address("127.0.0.1", 0)) as taken,
        pytest.raises(PpspeechError, match="--port 0 takes a free one"),
    ):
        listening_at(Address("127.0.0.1", taken.getsockname()[1]))
