"""Three collections behind one server: the guide's own commands, typed in a fresh home."""

from __future__ import annotations

import json
import os
import signal
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from tests.house.tree import HOUSE, fenced
from tests.story.guides import guide_commands, typed
from tests.story.test_watch_a_blog import PAGE, blog_server

pytestmark = pytest.mark.timeout(240)

GUIDE = "several-collections"
WORDS = {"blog": "ferry", "shop": "umbrella", "law": "easement"}
USUAL = "127.0.0.1:8400"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home" / name.lower()))
    folder = tmp_path / "here"
    folder.mkdir()
    return folder


@pytest.fixture
def sites(tmp_path: Path) -> Iterator[dict[str, str]]:
    """Where the guide's three sites are here, each with a word of its own."""
    with ExitStack() as running:
        found = {}
        for name, word in WORDS.items():
            folder = tmp_path / name
            folder.mkdir()
            text = PAGE.format(
                title=f"The {name}", text=f"Here you read of the {word}.", more=f"And of the {word} again."
            )
            (folder / "index.html").write_text(text, encoding="utf-8")
            found[f"https://{name}.example.org"] = f"http://{running.enter_context(blog_server(folder))}"
        yield found


@pytest.fixture
def place(home: Path, sites: dict[str, str]) -> Iterator[str]:
    """Where the server of the guide listens, once all its commands were typed."""
    allowed = ", ".join(f'"{address.removeprefix("http://")}"' for address in sites.values())
    (home / "levada.toml").write_text(f"[guard]\nallow = [{allowed}]\n", encoding="utf-8")
    with socket.create_server(("127.0.0.1", 0)) as door:
        port = door.getsockname()[1]
    here = f"127.0.0.1:{port}"
    *crawls, serve, ask = guide_commands(GUIDE)
    for line in crawls:
        ended = typed(line, home, sites)
        assert ended.returncode == 0, ended.stderr
    server = int(typed(serve.replace("--all", f"--all --port {port}"), home).stdout)
    try:
        asked = typed(
            ask.replace("curl", "curl -sS --retry 60 --retry-delay 1 --retry-all-errors"), home, {USUAL: here}
        )
        assert asked.returncode == 0, asked.stderr
        assert json.loads(asked.stdout)["total"] == 1
        yield here
    finally:
        os.kill(server, signal.SIGTERM)


def answer(url: str, key: str = "") -> Any:
    with urlopen(Request(url, headers={"Authorization": f"Bearer {key}"} if key else {}), timeout=30) as told:
        return json.load(told)


def test_the_guide_serves_three_collections_each_with_its_own_pages(place: str, home: Path) -> None:
    listed = answer(f"http://{place}/api/v1/collections")["collections"]
    assert [(each["name"], each["path"], each["pages"]) for each in listed] == [
        (name, f"/c/{name}/", 1) for name in sorted(WORDS)
    ]
    for name in WORDS:
        for other, word in WORDS.items():
            found = answer(f"http://{place}/c/{name}/api/v1/search?q={word}")["total"]
            assert found == (1 if other == name else 0), (name, word)
    assert "umbrella" in typed("levada search --in shop umbrella", home).stdout


def test_users_and_keys_of_the_guide_reach_only_their_collections(place: str, home: Path) -> None:
    _, block, *_ = fenced(HOUSE / "docs" / "guides" / f"{GUIDE}.md")
    export, ada, bob, key = block.strip().splitlines()
    data_home = os.environ["XDG_DATA_HOME"]
    export = export.replace("~/.local/share", data_home)
    for line in (ada, bob):
        done = typed(f"{export}; echo correct horse battery | {line}", home)
        assert done.returncode == 0, done.stderr
    made = typed(f"{export}; {key} --json", home)
    secret = json.loads(made.stdout)["secret"]
    assert answer(f"http://{place}/c/blog/api/v1/search?q=ferry", secret)["total"] == 1
    for path in ("/c/shop/api/v1/search?q=umbrella", "/c/blog/api/v1/settings?", "/api/v1/users"):
        with pytest.raises(HTTPError) as refused:
            answer(f"http://{place}{path}", "" if path.endswith("?") else secret)
        with refused.value as error:
            assert error.code in (401, 403), path
