"""Where settings come from: the order of the sources, what a collection keeps, and names of collections."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.core.configuration.following import SettingsFollower, takes_effect_at_once
from levada.core.configuration.kept import KeptValue, encode_kept, read_kept
from levada.core.configuration.layers import (
    Given,
    Source,
    environment_values,
    file_given,
    flags_given,
    resolve,
    variable_of,
)
from levada.core.configuration.places import folder_named, give_name, named_folders, take_name
from levada.core.configuration.values import MASK, check_values, masked, parse_value, setting_types, shown
from levada.core.errors import NotFound, SettingsError, StoreError, UsageError
from levada.core.folder import DataFolder
from levada.core.settings import Settings, combined_settings, values_of
from levada.testing.common import properties

DELAY = "politeness.delay"


@pytest.fixture
def folder(tmp_path: Path) -> DataFolder:
    path = tmp_path / "data"
    path.mkdir()
    (path / "levada.db").touch()
    return DataFolder(path)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the user's own settings and collections lie."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    (tmp_path / "config" / "levada").mkdir(parents=True)
    return tmp_path


def toml(folder: Path, text: str) -> Path:
    path = folder / "levada.toml"
    path.write_text(text)
    return path


def test_the_strongest_source_decides(home: Path) -> None:
    kept: dict[str, KeptValue] = {}
    nothing = Given()

    def decided(given: Given, environment: dict[str, str]) -> tuple[float, Source]:
        found = resolve(kept, given, environment).report()[DELAY]
        return found.value, found.source

    assert decided(nothing, {}) == (1.0, Source.DEFAULT)
    (home / "config" / "levada" / "levada.toml").write_text("[politeness]\ndelay = 2\n")
    assert decided(nothing, {}) == (2.0, Source.USER)
    kept[DELAY] = KeptValue(3.0, "a test", 1.0)
    assert decided(nothing, {}) == (3.0, Source.COLLECTION)
    file = file_given(toml(home, "[politeness]\ndelay = 4\n"))
    assert decided(file, {}) == (4.0, Source.FILE)
    assert decided(file, {variable_of(DELAY): "5"}) == (5.0, Source.ENVIRONMENT)
    flag = flags_given(file, {DELAY: ("--delay", 6.0)})
    assert decided(flag, {variable_of(DELAY): "5"}) == (6.0, Source.FLAG)


@properties(100)
@given(
    st.dictionaries(
        st.sampled_from([DELAY, "budget.per_hour", "fetch.slots", "crawl.max_depth"]), st.integers(1, 9_000)
    ),
    st.text(max_size=10),
)
def test_what_is_kept_is_read_back(values: dict[str, Any], by: str) -> None:
    kept = {key: KeptValue(value, by or "x", 1.5) for key, value in check_values(values, "").items()}
    assert read_kept(encode_kept(kept), "a test") == kept


def test_every_setting_survives_text_and_back() -> None:
    for key, value in values_of(Settings()).items():
        text = value if isinstance(value, str) else shown(value)
        assert check_values({key: parse_value(key, text)}, "")[key] == value
    assert set(values_of(Settings())) == set(setting_types())


def test_a_full_dump_of_an_older_version_counts_where_it_differs(folder: DataFolder) -> None:
    older = Settings().replace({DELAY: 2.5, "crawl.max_depth": 20})
    (folder.path / "settings.json").write_bytes(msgspec.json.encode(older))
    assert {key: each.value for key, each in folder.kept_settings().items()} == {DELAY: 2.5}
    assert folder.settings() == older


def test_what_the_environment_says_is_never_kept(folder: DataFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = "postgresql://me:hushhush@127.0.0.1/levada"
    monkeypatch.setenv("LEVADA_STORE_SERVERS", secret)
    settings = folder.settings()
    assert settings.store.servers == (secret,)
    assert folder.save_settings(settings) == []
    assert folder.save_settings(settings.replace({DELAY: 9.0}))[0].key == DELAY
    assert "hushhush" not in (folder.path / "settings.json").read_text()


def test_a_value_goes_back_when_its_file_does_not_have_it_any_more(folder: DataFolder, tmp_path: Path) -> None:
    path = toml(tmp_path, "[politeness]\ndelay = 4\n[crawl]\nmax_depth = 3\n")
    first = DataFolder(folder.path, file_given(path))
    first.save_settings(first.settings())
    folder.change_settings({"crawl.max_depth": 5}, "a user")
    second = DataFolder(folder.path, file_given(toml(tmp_path, "[budget]\nper_hour = 7\n")))
    changes = second.save_settings(second.settings())
    assert [str(each) for each in changes] == [
        "budget.per_hour: 0 -> 7, kept with the collection",
        "politeness.delay: 4 -> 1, the default",
    ]
    assert folder.settings().crawl.max_depth == 5, "another source set it since"


def test_what_was_set_while_a_crawl_began_stays(folder: DataFolder) -> None:
    crawl = DataFolder(folder.path)
    settings = crawl.settings()
    folder.change_settings({DELAY: 7.0}, "a user")
    assert crawl.save_settings(settings) == []
    assert folder.settings().politeness.delay == 7.0
    follower = SettingsFollower(crawl, settings)
    followed = follower.poll()
    assert followed is not None
    assert followed.politeness.delay == 7.0
    assert follower.poll() is None


def test_a_follower_takes_up_what_it_can_and_leaves_the_rest(
    folder: DataFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEVADA_BUDGET_PER_HOUR", "100")
    running = folder.settings()
    follower = SettingsFollower(folder, running)
    folder.change_settings({"fetch.slots": 3, "budget.per_hour": 7}, "a user")
    assert follower.poll() is None
    folder.change_settings({"crawl.max_depth": 2}, "a user")
    assert follower.poll() == running.replace({"crawl.max_depth": 2})
    (folder.path / "settings.json").write_text("[")
    assert follower.poll() is None
    assert (takes_effect_at_once("fetch.slots"), takes_effect_at_once(DELAY)) == (False, True)


def test_values_that_contradict_each_other_are_named_with_their_sources(folder: DataFolder) -> None:
    with pytest.raises(SettingsError) as refused:
        folder.change_settings({"revisit.ceiling": 600.0, DELAY: 3.0}, "a user")
    assert "revisit.first = 3600 (default), revisit.ceiling = 600 (collection, by a user)" in str(refused.value)
    assert folder.kept_settings() == {}, "all changes or none"


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("LEVADA_POLITNESS_DELAY", "1", "did you mean LEVADA_POLITENESS_DELAY?"),
        ("LEVADA_BUDGET_PER_YEAR", "1", "names no setting"),
        ("LEVADA_CRAWL_SCOPE", "host", 'crawl.scope must be "sites" or "any"'),
        ("LEVADA_FETCH_SLOTS", "hushhush", "fetch.slots must be a whole number"),
    ],
)
def test_a_wrong_variable_is_named_without_its_value(name: str, text: str, says: str) -> None:
    with pytest.raises(SettingsError) as refused:
        environment_values({name: text})
    assert str(refused.value).startswith(f"the variable {name}")
    assert says in str(refused.value)
    assert "hushhush" not in str(refused.value)


def test_variables_of_kubernetes_and_of_commands_are_no_settings() -> None:
    others = ["CRAWL_PORT", "CRAWL_PORT_80_TCP_ADDR", "STORE_SERVICE_HOST", "SERVICE_PORT", "STORE", "TOKEN", "DATA"]
    assert environment_values({f"LEVADA_{name}": "x" for name in others}) == {}


@pytest.mark.parametrize(
    ("key", "text", "says"),
    [
        ("politeness.dely", "1", "did you mean politeness.delay"),
        ("delay", "1", "did you mean politeness.delay?"),
        ("budget.per_hour", "many", "budget.per_hour must be a whole number, not 'many'"),
        ("fetch.http2", "maybe", "fetch.http2 must be true or false, not 'maybe'"),
        ("crawl.scope", "host", 'crawl.scope must be "sites" or "any", not "host"'),
        ("politeness.delay", "-1", "politeness.delay: expected a number >= 0.0"),
        ("guard.allow", "*", "exact"),
        ("revisit.importance", "5", "revisit.importance"),
    ],
)
def test_a_wrong_key_or_value_says_what_fits(key: str, text: str, says: str) -> None:
    with pytest.raises(SettingsError) as refused:
        check_values({key: parse_value(key, text)}, "")
    assert says in str(refused.value)


def test_passwords_are_masked_wherever_they_stand() -> None:
    servers = ["postgresql://me:hush/h@db/x", "host=db password='hu sh' user=me", "postgresql://db/x"]
    assert masked("store.servers", servers) == [
        f"postgresql://me:{MASK}@db/x",
        f"host=db password={MASK} user=me",
        "postgresql://db/x",
    ]
    assert masked("plugins.mine.api_key", "abc") == MASK
    assert masked("plugins.mine.depth", 3) == 3


def test_a_damaged_file_is_one_sentence_and_stays(folder: DataFolder) -> None:
    damaged = folder.path / "settings.json"
    for content in ("[", "{}x", json.dumps({"politeness": {"delay": "long"}}), json.dumps({"nonsense": {"x": 1}})):
        damaged.write_text(content)
        with pytest.raises(StoreError, match=r"settings\.json cannot be read"):
            folder.save_settings(Settings())
        assert damaged.read_text() == content


def test_names_of_collections(home: Path) -> None:
    (home / "share" / "levada" / "blog").mkdir(parents=True)
    assert named_folders() == {"blog": home / "share" / "levada" / "blog"}
    give_name("news", home / "elsewhere")
    assert folder_named("news") == home / "elsewhere"
    with pytest.raises(NotFound, match="did you mean blog"):
        folder_named("blgo")
    assert folder_named("new-one", create=True) == home / "share" / "levada" / "new-one"
    with pytest.raises(UsageError, match="is the name of"):
        give_name("blog", home / "elsewhere")
    with pytest.raises(UsageError, match="no name of a collection"):
        folder_named("../x")
    with pytest.raises(UsageError, match="rename or delete"):
        take_name("blog")
    assert take_name("news") == home / "elsewhere"
    assert list(named_folders()) == ["blog"]


def test_all_values_together_make_the_settings_again() -> None:
    settings = Settings().replace({"crawl.scope": "any", "revisit.importance": {"http://a/": 2.0}})
    assert combined_settings(values_of(settings), "") == settings
