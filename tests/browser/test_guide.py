"""The guide to rendering does what it says, with the shop in the place of its example."""

from __future__ import annotations

from pathlib import Path

import pytest

from levada.browser.tabs import MOST_REQUESTS, QUIET
from levada.core.settings import parse_settings
from tests.browser.shop import SHOP_BLOCK, shop_files
from tests.browser.tab import setup
from tests.house.tree import HOUSE
from tests.servers.nginx import nginx
from tests.story.guides import guide_commands, guide_settings, typed

GUIDE = (HOUSE / "docs" / "guides" / "javascript.md").read_text(encoding="utf-8")


def test_the_commands_do_what_the_guide_says(tmp_path: Path) -> None:
    setup()
    shop_files(tmp_path / "files")
    with nginx(tmp_path / "shop", SHOP_BLOCK.format(root=tmp_path / "files")) as port:
        (tmp_path / "levada.toml").write_text(f'[guard]\nallow = ["127.0.0.1:{port}"]\n[politeness]\ndelay = 0\n')
        here = {"https://shop.example": f"http://127.0.0.1:{port}", "shop.example": f"127.0.0.1:{port}"}
        done = [typed(command, tmp_path, here) for command in guide_commands("javascript")]
    assert [each.returncode for each in done] == [0, 0, 0, 0], done
    assert "It costs 103 euros" in done[2].stdout
    assert "auto" in done[3].stdout


@pytest.mark.parametrize("place", range(len(guide_settings("javascript"))))
def test_every_rule_of_the_guide_can_be_written(place: int) -> None:
    assert parse_settings(guide_settings("javascript")[place], "the guide").site


def test_the_numbers_of_the_guide_are_those_of_the_code() -> None:
    assert f"{MOST_REQUESTS} requests" in GUIDE
    assert f"{QUIET:g} seconds after the document" in GUIDE
