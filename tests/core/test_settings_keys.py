"""Settings keys that were renamed: the old ones are read for one version, with one warning."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import msgspec
import pytest

from levada.core.errors import SettingsError
from levada.core.folder import DataFolder
from levada.core.settings import PolitenessSettings, Settings, parse_settings, saved_settings

OLDER = """
[politeness]
at_once = 3
rest_after = 7
rest = 11.0
max_rest = 12.0
robots_seconds = 13.0

[parse]
kills = 4

[stages]
fetch_least = 5
parse_least = 1
"""
NEWER = """
[politeness]
max_concurrent = 3
backoff_after = 7
backoff = 11.0
max_backoff = 12.0
robots_ttl = 13.0

[parse]
max_kills = 4

[stages]
min_fetch = 5
min_parse = 1
"""


def test_old_keys_are_read_with_one_warning_that_names_the_new_ones(caplog: pytest.LogCaptureFixture) -> None:
    assert parse_settings(OLDER, "older.toml") == parse_settings(NEWER, "newer.toml")
    (record,) = caplog.records
    assert (record.levelno, record.name) == (logging.WARNING, "levada.core.settings")
    words = record.getMessage()
    assert words.startswith("older.toml: old keys, read until the next version: ")
    assert words.count(" is now ") == 8
    assert "politeness.max_rest is now politeness.max_backoff" in words


def test_an_old_key_beside_its_new_one_is_refused() -> None:
    with pytest.raises(SettingsError) as refused:
        parse_settings("[politeness]\nrest = 5\nbackoff = 5", "levada.toml")
    assert str(refused.value) == "levada.toml, [politeness]: rest is the old name of backoff: remove one of them"


def test_a_wrong_value_under_an_old_key_is_named_by_the_new_one() -> None:
    with pytest.raises(SettingsError, match=r"politeness\.backoff: expected a number"):
        parse_settings("[politeness]\nrest = 'long'", "levada.toml")


def test_settings_that_an_older_version_saved_are_read_without_a_word(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    now = json.loads(msgspec.json.encode(Settings(politeness=PolitenessSettings(backoff=42.0))))
    now["politeness"]["rest"] = now["politeness"].pop("backoff")
    (tmp_path / "settings.json").write_text(json.dumps(now))
    assert DataFolder(tmp_path).settings().politeness.backoff == 42.0
    assert caplog.records == []


def test_saved_settings_come_back_as_they_were() -> None:
    settings = parse_settings(NEWER, "newer.toml")
    assert saved_settings(msgspec.json.encode(settings)) == settings
