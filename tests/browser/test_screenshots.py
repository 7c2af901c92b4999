"""Pictures of rendered pages: kept with each version, written to a file, and shown beside the diff."""

from __future__ import annotations

import io
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.pages.compression import content_size, pack_content, picture_of, unpack_content, unpack_text, with_picture
from tests.browser.shop import SHOP_BLOCK, set_price, shop_files
from tests.browser.tab import setup
from tests.needs import package
from tests.serve.browser_session import Walk, browser, open_page
from tests.serve.served import served
from tests.servers.nginx import nginx
from tests.story.secrets_planted import run


@given(st.binary(max_size=300_000), st.binary(max_size=300_000), st.binary(min_size=1, max_size=300_000))
def test_a_picture_changes_nothing_of_the_content_it_follows(text: bytes, body: bytes, picture: bytes) -> None:
    plain = pack_content(text, body, 1)
    packed = with_picture(plain, picture)
    assert (unpack_content(packed), unpack_text(packed)) == ((text, body), text)
    assert content_size(packed) == content_size(plain)
    assert (picture_of(packed), picture_of(plain)) == (picture, b"")


@given(st.binary(max_size=200))
def test_what_only_ends_like_a_picture_is_none(packed: bytes) -> None:
    assert picture_of(packed + b"\0picture") in (b"", packed)


class Shop(NamedTuple):
    home: Path
    lamp: str


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    setup()
    home = tmp_path_factory.mktemp("pictures")
    shop_files(home / "files")
    with nginx(home / "shop", SHOP_BLOCK.format(root=home / "files")) as port:
        (home / "levada.toml").write_text(
            f'[guard]\nallow = ["127.0.0.1:{port}"]\n[politeness]\ndelay = 0\n[[site]]\nmatch = "127.0.0.1:{port}"\n'
            'render = "auto"\nwait_for = "h1"\nscreenshot = true\ndepth = 0\n'
        )
        lamp = f"http://127.0.0.1:{port}/lamps/4"
        assert run(home, "crawl", lamp, "--once").returncode == 0
        set_price(home / "files", 4, 999)
        assert run(home, "check", lamp).returncode == 0
        yield Shop(home, lamp)


def test_each_version_has_its_picture(shop: Shop) -> None:
    pictures = []
    for version in ("1", "2"):
        file = shop.home / f"{version}.jpg"
        assert run(shop.home, "page", shop.lamp, "--version", version, "--screenshot", str(file)).returncode == 0
        with package("PIL.Image").open(file) as image:
            assert (image.format, image.width) == ("JPEG", 1280)
        pictures.append(file.read_bytes())
    assert pictures[0] != pictures[1]


def test_it_goes_with_the_collection(shop: Shop) -> None:
    assert run(shop.home, "backup", "saved.backup").returncode == 0
    assert run(shop.home, "restore", "saved.backup", "--data", "again").returncode == 0
    assert run(shop.home, "page", shop.lamp, "--screenshot", "again.jpg", "--data", "again").returncode == 0
    assert run(shop.home, "page", shop.lamp, "--screenshot", "before.jpg").returncode == 0
    assert (shop.home / "again.jpg").read_bytes() == (shop.home / "before.jpg").read_bytes()


def test_the_dashboard_shows_both_beside_the_diff(shop: Shop) -> None:
    image = package("PIL.Image")
    with served(shop.home / "levada-data") as address, browser() as opened, open_page(opened, "wide") as page:
        walk = Walk(page, address)
        walk.go_page(shop.lamp)
        page.wait_for_function("() => document.querySelectorAll('.pictures img').length === 2")
        sources = [each.get_attribute("src") or "" for each in page.query_selector_all(".pictures img")]
        sizes = {image.open(io.BytesIO(b64decode(source.partition(",")[2]))).width for source in sources}
        assert sizes == {1280}
        assert not walk.is_too_wide()
        assert walk.complaints == []


def test_a_page_without_one_says_how_to_have_one(shop: Shop, tmp_path: Path) -> None:
    settings = (shop.home / "levada.toml").read_text().replace("screenshot = true", "screenshot = false")
    (tmp_path / "levada.toml").write_text(settings)
    assert run(tmp_path, "crawl", shop.lamp, "--once").returncode == 0
    done = run(tmp_path, "page", shop.lamp, "--screenshot", "x.jpg")
    assert done.returncode == 3
    assert "set screenshot=true" in done.stderr
    assert not (tmp_path / "x.jpg").exists()
