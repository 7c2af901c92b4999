"""The server over a small collection: asked without a network, or at a real port."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from starlette.testclient import TestClient

from levada.serve.access import Access, Tokens
from levada.serve.app import make_app
from levada.serve.view import View
from tests.cli.collection import build
from tests.needs import missing

if TYPE_CHECKING:
    from playwright.sync_api import Browser

NOBODY = Tokens()
Open = Callable[..., TestClient]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return build(tmp_path / "levada-data")


@pytest.fixture
def open_server() -> Iterator[Open]:
    with ExitStack() as stack:

        def opened(path: Path, tokens: Tokens = NOBODY, client: str = "127.0.0.1") -> TestClient:
            app = make_app(View(path), Access(tokens, frozenset(), lambda: 0.0))
            base = "http://127.0.0.1:8400"
            return stack.enter_context(
                TestClient(app, base_url=base, raise_server_exceptions=False, client=(client, 5000))
            )

        yield opened


@pytest.fixture
def api(open_server: Open, data: Path) -> TestClient:
    return open_server(data)


@pytest.fixture(scope="module")
def opened() -> Iterator[Browser]:
    """A browser, for the tests of a module."""
    from tests.serve.browser_session import browser, chromium

    if chromium() is None:
        missing("no Chromium is installed: run tests/servers/install.sh as root, or install it yourself")
    with browser() as started:
        yield started
