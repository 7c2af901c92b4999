"""The registry: what is found, what is refused in one sentence, and what contains a plug-in that fails."""

from __future__ import annotations

import asyncio
import json
import logging
import math
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from levada.browser import RenderingFetcher
from levada.cli.app import app
from levada.collection.components import make_fetcher, make_policy
from levada.core import plugins
from levada.core.errors import PluginError, SettingsError, StoreError
from levada.core.folder import DataFolder
from levada.core.plugins import GROUPS, Containment, failures, find, installed, known, load, translating
from levada.core.reasons import Reason
from levada.core.records import Outcome, Request
from levada.core.settings import parse_settings
from levada.fetch import ContainedFetcher, CredentialFetcher, FetchLimits
from levada.fetch.proxies import RouteFetcher
from levada.fetch.sessions import SessionFetcher
from levada.freshness import ContainedPolicy
from levada.grouping import KeyedHash, MurmurHash, grouping_named
from levada.stages import Controller, StageSample, live_rule
from levada.store.opening import open_reading_store, open_store, store_limits
from levada.testing.policy import a_page, visited
from tests.house.tree import HOUSE, fenced

_MODULE = """
import time
from levada.core.records import Plan, Response
from levada.stages.rule import sizing_rule


class Policy:
    def __init__(self, options=None, *, estimates):
        self.estimates, self.how = estimates, (options or {}).get("how", "raise")

    def plan(self, page, visit, modified=None):
        return bad(self.how, Plan(float("nan")))

    def visit_after_hint(self, page, said): return bad(self.how, float("inf"))
    def wants_full_fetch(self, page): return bad(self.how, "")
    def limit_site(self, site, per_second): pass
    def set_budget(self, per_hour): pass
    def price(self): return 0.0


def bad(how, rubbish):
    if how == "hang":
        time.sleep(3600)
    if how == "rubbish":
        return rubbish
    raise RuntimeError("I am broken")


class Grouping:
    def __init__(self, workers): self.workers = workers
    def choose(self, key, now): return 10_000
    def choose_many(self, keys, now): raise RuntimeError("I am broken")


def controller(least=1, most=1, period=1.0, startup=0.0):
    def step(memory, parameters, sample):
        raise RuntimeError("I am broken")
    return sizing_rule("broken", step, (least, most), period, startup=startup)


class Fetcher:
    def __init__(self, options=None): self.how = (options or {}).get("how", "raise")
    async def fetch(self, request): return bad(self.how, "no response")
    async def close(self): raise RuntimeError("I am broken")


class Store:
    def __init__(self, path, limits=None): self.path = path
    def close(self): pass
    def lease(self, now, limit, seconds, due=None): raise RuntimeError("I am broken")
    commit = document = changes = lease


class Later:
    levada_protocol = 2


class Empty:
    pass
"""
_ENTRIES = """
[levada.policies]
broken = broken_plugins:Policy
gone = broken_plugins:Nothing
missing = no_such_module:Policy
later = broken_plugins:Later
twice = broken_plugins:Policy
learned = broken_plugins:Policy
empty = broken_plugins:Empty
[levada.groupings]
broken = broken_plugins:Grouping
empty = broken_plugins:Empty
[levada.controllers]
broken = broken_plugins:controller
[levada.fetchers]
broken = broken_plugins:Fetcher
[levada.stores]
broken = broken_plugins:Store
"""


def distribution(folder: Path, name: str, entries: str) -> None:
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(entries)


@pytest.fixture(autouse=True)
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Two installed packages, one of them full of trouble."""
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "broken_plugins.py").write_text(_MODULE)
    distribution(folder, "broken", _ENTRIES)
    distribution(folder, "other", "[levada.policies]\ntwice = broken_plugins:Policy\n")
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setattr(plugins, "_failures", {})
    yield folder
    sys.modules.pop("broken_plugins", None)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("lerned", r'revisit.policy: no plug-in "lerned"; known: broken, cho, .*\(did you mean "learned"\?\)'),
        ("missing", 'the plug-in "missing" of broken 1.0 cannot be imported .*no_such_module'),
        ("gone", 'the plug-in "gone" of broken 1.0 cannot be imported .*Nothing'),
        ("later", "is written for version 2 of the protocol, and this Levada has version 1"),
        ("twice", 'two plug-ins are called "twice", of broken 1.0 and other 1.0: uninstall one'),
    ],
)
def test_what_cannot_be_used_is_one_sentence(name: str, words: str) -> None:
    with pytest.raises(PluginError, match=words) as refused:
        find("levada.policies", name)
    assert "\n" not in str(refused.value)


def test_a_plug_in_without_what_its_protocol_needs_is_refused() -> None:
    with pytest.raises(PluginError, match=r"has no choose, choose_many: see docs/plugins.md"):
        load("levada.groupings", "empty", workers=1)
    with pytest.raises(PluginError, match="neither a Rule nor has it a plan"):
        make_policy(parse_settings('[revisit]\npolicy = "empty"', "x"))


def test_a_built_in_is_never_replaced_and_the_one_who_tries_is_named() -> None:
    assert find("levada.policies", "learned").__module__ == "levada.freshness.learned"
    taken = next(each for each in installed() if (each.name, each.source) == ("learned", "broken 1.0"))
    assert taken.trouble == 'the name "learned" is taken by a built-in'


def test_a_wrong_name_is_said_where_settings_are_read() -> None:
    with pytest.raises(SettingsError, match=r'levada.toml: stages.controller: no plug-in "brokn"; known: broken, '):
        parse_settings('[stages]\ncontroller = "brokn"', "levada.toml")
    with pytest.raises(SettingsError, match=r"plugins.brokn: no plug-in"):
        parse_settings("[plugins.brokn]\nhow = 1", "levada.toml")


def test_built_in_names_cost_no_scan() -> None:
    code = (
        "import sys; from levada.core.settings import *; parse_settings('', 'x'); "
        "print('importlib.metadata' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


@pytest.mark.parametrize("group", GROUPS)
def test_every_built_in_can_be_imported(group: str) -> None:
    assert all(callable(find(group, name)) for name in GROUPS[group].builtins)
    assert set(GROUPS[group].builtins) <= set(known(group))


def test_the_command_lists_every_group_and_what_is_wrong() -> None:
    done = CliRunner().invoke(app, ["plugins"])
    assert done.exit_code == 0
    assert all(group in done.stdout for group in GROUPS)
    assert "cannot be imported" in done.stdout
    rows = json.loads(CliRunner().invoke(app, ["plugins", "--json"]).stdout)["plugins"]
    assert {"group": "levada.groupings", "name": "broken", "source": "broken 1.0", "trouble": ""} in rows


def test_the_examples_of_the_docs_run_and_keep_their_protocols(tmp_path: Path) -> None:
    names: dict[str, Any] = {}
    for block in fenced(HOUSE / "docs" / "plugins.md", "python"):
        exec(block, names)
    for group, made in (
        ("readers", names["NoteReader"]()),
        ("extractors", names["WholeText"]()),
        ("change_filters", names["WithoutNumbers"]()),
        ("fetchers", names["FixedFetcher"]()),
        ("groupings", names["FirstWorker"](3)),
        ("controllers", names["one_per_job"]()),
        ("stores", names["ForgetfulStore"]()),
        ("indexes", names["SmallIndex"]()),
        ("exporters", names["AddressExporter"]()),
        ("notifiers", names["PrintNotifier"]()),
        ("hooks", names["PrintHook"]()),
    ):
        assert [each for each in GROUPS[f"levada.{group}"].members if not hasattr(made, each)] == []
    assert names["daily"]().step([], (), 0.0, 1) == 86_400.0
    names["TestAddresses"]().test_every_page_is_exported_once(tmp_path)


# Containment


def test_three_failures_in_a_row_are_enough(caplog: pytest.LogCaptureFixture) -> None:
    contained, calls = Containment("levada.policies", "x"), []

    def fail() -> int:
        calls.append(threading.current_thread())
        raise RuntimeError("broken")

    with caplog.at_level(logging.WARNING):
        assert [contained.decide(fail, lambda: 7) for _ in range(5)] == [7] * 5
    assert len(calls) == 3
    assert threading.main_thread() not in calls
    assert contained.given_up
    assert failures() == {"revisit.policy:x": 3}
    assert len(caplog.records) == 1


def test_a_success_forgives() -> None:
    contained = Containment("levada.policies", "x")
    for _ in range(4):
        contained.decide(lambda: 1 // 0, lambda: 7)
        contained.decide(lambda: 1 // 0, lambda: 7)
        assert contained.decide(lambda: 1, lambda: 7) == 1
    assert not contained.given_up


def test_one_that_hangs_is_left_alone() -> None:
    contained, released = Containment("levada.policies", "x", seconds=0.01), threading.Event()
    assert [contained.decide(lambda: released.wait() and 1, lambda: 7) for _ in range(4)] == [7] * 4
    assert contained.given_up
    released.set()


def test_even_an_exit_ends_nothing() -> None:
    contained = Containment("levada.policies", "x")
    assert [contained.decide(sys.exit, lambda: 7) for _ in range(4)] == [7] * 4


@pytest.mark.parametrize("how", ["raise", "hang", "rubbish"])
def test_a_broken_policy_plans_all_the_same(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Containment.__init__, "__kwdefaults__", {"seconds": 0.01, "most": 3})
    policy = make_policy(parse_settings(f'[revisit]\npolicy = "broken"\n[plugins.broken]\nhow = "{how}"', "x"))
    assert isinstance(policy, ContainedPolicy)
    page = visited(policy, a_page(), 0.0, Outcome.FIRST)
    for step in range(1, 6):
        page = visited(policy, page, 3600.0 * step, Outcome.CHANGED)
        assert page.interval is not None
        assert 0.0 < page.interval < math.inf
    assert failures()["revisit.policy:broken"] == 3


def test_a_broken_grouping_sends_everything_to_workers_that_there_are() -> None:
    class Hashes:
        first, second, keyed = MurmurHash(13), MurmurHash(17), KeyedHash(b"secret")

    grouping = grouping_named("broken", 4, Hashes())
    assert all(0 <= grouping.choose(key, 0.0) < 4 for key in range(10))
    assert all(0 <= worker < 4 for worker in grouping.choose_many(list(range(10)), 0.0))
    assert failures()["trends.grouping:broken"] == 3


def test_a_broken_controller_leaves_the_stage_to_ours() -> None:
    controller = Controller(live_rule("broken", 1, 20, {"period": 1.0, "startup": 0.0}))
    wanted = [
        controller.workers_wanted(
            StageSample(at=float(at), queue=50.0, on=1.0, busy=1.0, arrived=50.0 + 20.0 * at, done=2.0 * at)
        )
        for at in range(1, 30)
    ]
    assert all(1 <= each <= 20 for each in wanted)
    assert max(wanted) > 1
    assert failures()["stages.controller:broken"] == 3


@pytest.mark.parametrize("how", ["raise", "rubbish", "hang"])
def test_a_broken_fetcher_is_a_failed_visit(how: str) -> None:
    async def story() -> Reason | None:
        made = load("levada.fetchers", "broken", {"how": how})
        fetcher = ContainedFetcher("broken", made, FetchLimits(seconds=0.05), grace=0.0)
        response = await fetcher.fetch(Request("http://a.test/"))
        if how != "hang":
            await fetcher.close()
        return response.reason

    assert asyncio.run(story()) is Reason.PLUGIN
    assert failures() == {"fetch.fetcher:broken": 1}


def test_the_settings_choose_a_fetcher() -> None:
    async def story() -> None:
        fetcher = make_fetcher(parse_settings('[fetch]\nfetcher = "broken"', "x"))
        assert isinstance(fetcher, SessionFetcher)  # the layers around any fetcher
        assert isinstance(fetcher.inner, RenderingFetcher)
        assert isinstance(fetcher.inner.inner, CredentialFetcher)
        assert isinstance(fetcher.inner.inner.inner, RouteFetcher)
        assert isinstance(fetcher.inner.inner.inner.inner, ContainedFetcher)
        await fetcher.close()

    asyncio.run(story())


def test_the_settings_choose_a_store_and_its_errors_are_sentences(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path / "data")
    folder.make()
    settings = parse_settings('[store]\nengine = "broken"', "x")
    store = open_store(folder, settings.store, store_limits(settings))
    with pytest.raises(StoreError, match=r'store.engine: the plug-in "broken" failed \(RuntimeError: I am broken\)'):
        store.lease(0.0, 1, 1.0)
    assert folder.exists()
    assert open_reading_store(folder) is not None
    with pytest.raises(SettingsError, match=r"is kept by broken, and store.engine is sqlite"):
        open_store(folder, parse_settings("", "x").store, store_limits(settings))


def test_an_index_error_is_a_sentence() -> None:
    class Index:
        def position(self) -> int:
            raise KeyError("seq")

    with pytest.raises(StoreError, match=r"index\.engine"):
        translating("levada.indexes", "x", Index()).position()


def test_a_plug_in_engine_holds_a_collection_in_one_place() -> None:
    with pytest.raises(SettingsError, match=r"store\.servers"):
        parse_settings('[store]\nengine = "broken"\nshards = 2', "x")
