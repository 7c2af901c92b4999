"""The guide `watch-one-part.md`, typed as it stands there, on a shop whose price changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.story.guides import guide_commands, typed
from tests.story.test_watch_a_blog import blog_server

pytestmark = pytest.mark.timeout(240)


def lamp(price: str, clock: str) -> str:
    return (
        f"<!doctype html><title>Lamp</title><main><h1>Lamp</h1><p class=price>{price} EUR</p>"
        f"<p>Seen {clock}</p><a href=/bulb>Bulb</a></main>"
    )


def test_the_guide_stores_and_compares_the_price_alone(tmp_path: Path) -> None:
    shop = tmp_path / "site"
    shop.mkdir()
    page = shop / "lamp"
    page.write_text(lamp("1299.00", "2026-11-19 10:22:05"))
    said: list[str] = []
    with blog_server(shop) as address:
        (tmp_path / "levada.toml").write_text(f'[guard]\nallow = ["{address}"]\n[politeness]\ndelay = 0\n')
        for command in guide_commands("watch-one-part"):
            if "check" in command:
                page.write_text(lamp("1199.00", "2026-11-20 11:00:00"))
            done = typed(command, tmp_path, {"https://shop.example": f"http://{address}"})
            assert done.returncode == 0, (command, done.stdout, done.stderr)
            said.append(done.stdout)
    tried, _, crawled, stored, checked = said
    assert "1299.00 EUR" in tried
    assert "Seen" not in stored
    assert "1 page stored" in crawled
    assert "1299.00 EUR" in stored
    assert "-1299.00 EUR\n+1199.00 EUR" in checked
