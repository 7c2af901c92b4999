"""The API as a program sees it: right answers, and a code and a sentence for everything else."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

import pytest
from starlette.testclient import TestClient

from levada.collection.commands import open_commands
from levada.core.commands import AddSeeds, ChangeBudget, DropSite, Pause, Resume
from levada.core.folder import DataFolder
from tests.cli.collection import FRONT, GONE, NEW, SCRIPT, VAPUR, drop
from tests.serve.conftest import Open

V1 = "/api/v1"
ATOM = "{http://www.w3.org/2005/Atom}"


def code_of(answer: object) -> str:
    told = answer.json()  # type: ignore[attr-defined]
    assert set(told) == {"error"}
    assert set(told["error"]) == {"code", "message"}
    assert told["error"]["message"]
    return str(told["error"]["code"])


def test_search_finds_a_page_and_says_where_the_words_stand(api: TestClient) -> None:
    told = api.get(f"{V1}/search", params={"q": "vapur"}).json()
    assert told["total"] >= 1
    hit = next(each for each in told["hits"] if each["url"] == VAPUR)
    assert any(piece["asked"] for piece in hit["snippet"])
    assert told["next_offset"] is None


def test_search_is_paged(api: TestClient) -> None:
    everything = api.get(f"{V1}/search", params={"q": "lang:tr", "limit": 100}).json()
    pages, offset = [], 0
    while offset is not None:
        told = api.get(f"{V1}/search", params={"q": "lang:tr", "limit": 1, "offset": offset}).json()
        pages += [hit["url"] for hit in told["hits"]]
        offset = told["next_offset"]
    assert sorted(pages) == sorted(hit["url"] for hit in everything["hits"])


def test_a_search_is_sorted_counted_put_together_and_corrected(api: TestClient) -> None:
    asked = {"q": "istanbul vapru", "sort": "changed", "facets": "site,time", "one_per": "site"}
    told = api.get(f"{V1}/search", params=asked).json()
    assert told["did_you_mean"] == "istanbul vapur"
    assert [hit["url"] for hit in told["hits"]] == [VAPUR]
    assert {"text": "Vapur", "asked": True} in told["hits"][0]["title_pieces"]
    assert set(told["facets"]) == {"site", "time"}
    assert told["facets"]["site"] == [{"value": "example.org", "count": 1, "filter": "site:example.org"}]
    (hit,) = api.get(f"{V1}/search", params={"q": "istanbul", "one_per": "site"}).json()["hits"]
    assert hit["more"] == len(hit["others"]) == 1
    assert hit["others"][0]["url"] in {FRONT, VAPUR}
    assert api.get(f"{V1}/search", params={"q": "std:string vapur"}).json()["notes"]
    plain = api.get(f"{V1}/search", params={"q": "vapur"}).json()
    assert (plain["did_you_mean"], plain["facets"], plain["notes"]) == (None, {}, [])


def test_a_search_that_cannot_be_understood_says_where(api: TestClient) -> None:
    answer = api.get(f"{V1}/search", params={"q": 'vapur "'})
    assert (answer.status_code, code_of(answer)) == (400, "bad-query")
    assert "column" in answer.json()["error"]["message"]


def test_a_page_its_versions_and_what_changed(api: TestClient) -> None:
    page = api.get(f"{V1}/page", params={"url": VAPUR}).json()
    versions = api.get(f"{V1}/page/versions", params={"url": VAPUR}).json()["versions"]
    assert page["version"] == versions[0]["version"] == 3
    diff = api.get(f"{V1}/page/diff", params={"url": VAPUR}).json()
    assert (diff["before"]["version"], diff["after"]["version"]) == (2, 3)
    first = api.get(f"{V1}/page/diff", params={"url": VAPUR, "before": 1, "after": 2}).json()
    changed = [line for hunk in first["hunks"] for line in hunk["lines"] if line["sign"] != " "]
    assert ["".join(piece for piece, _ in line["pieces"]) for line in changed] == ["Kadıköy 08:15", "Kadıköy 08:30"]
    text = api.get(f"{V1}/page/text", params={"url": VAPUR, "version": 1}).json()["text"]
    assert "Kadıköy 08:15" in text
    markdown = api.get(f"{V1}/page/markdown", params={"url": VAPUR, "version": 1}).json()
    assert (markdown["version"], markdown["markdown"][:2]) == (1, "# ")
    assert "Kadıköy 08:15" in markdown["markdown"]


@pytest.mark.parametrize("asked", [{"before": 3, "after": 2}, {"after": 9}, {"before": 3}])
def test_versions_that_are_not_there_are_not_found(api: TestClient, asked: dict[str, int]) -> None:
    answer = api.get(f"{V1}/page/diff", params={"url": VAPUR, **asked})
    assert (answer.status_code, code_of(answer)) == (404, "not-found")


def test_why_is_told_in_a_sentence_and_in_facts(api: TestClient) -> None:
    told = api.get(f"{V1}/why", params={"url": VAPUR}).json()
    assert told["sentence"]
    assert len(told["history"]) == told["visits"]


def test_a_page_that_was_never_stored_has_no_version(api: TestClient) -> None:
    told = api.get(f"{V1}/page", params={"url": NEW}).json()
    assert (told["version"], told["fetched_at"], told["state"]) == (0, None, "new")
    assert api.get(f"{V1}/page/text", params={"url": NEW}).status_code == 404


def test_sites_come_by_name_and_page_by_page(api: TestClient) -> None:
    names: list[str] = []
    after = ""
    while after is not None:
        told = api.get(f"{V1}/sites", params={"limit": 1, "after": after}).json()
        names += [site["site"] for site in told["sites"]]
        after = told["next"]
    assert names == sorted(names)
    assert "example.org" in names
    one = api.get(f"{V1}/site", params={"site": "example.org"}).json()
    assert FRONT in [page["url"] for page in one["pages"]]


def test_a_dropped_site_says_so(api: TestClient, data: Path) -> None:
    def told() -> tuple[dict[str, Any], set[str | None]]:
        one = api.get(f"{V1}/site", params={"site": "example.org"}).json()
        return one["site"], {page["next_visit"] for page in one["pages"]}

    before, planned = told()
    assert before["dropped"] is False
    assert None not in planned
    drop(data, "example.org")
    after, planned = told()
    assert after == before | {"dropped": True}
    assert planned == {None}


def test_changes_are_read_on_and_filtered(api: TestClient) -> None:
    everything = api.get(f"{V1}/changes", params={"limit": 1000}).json()
    read, after = [], ""
    for _ in range(100):
        told = api.get(f"{V1}/changes", params={"limit": 2, "after": after}).json()
        read += told["changes"]
        after = told["next"]
        if not told["changes"]:
            break
    assert read == everything["changes"]
    assert len({change["id"] for change in read}) == len(read)
    vapur = api.get(f"{V1}/changes", params={"words": "vapur"}).json()["changes"]
    assert {change["url"] for change in vapur} >= {VAPUR}
    assert GONE in {change["url"] for change in read if change["what"] == "gone"}
    latest = api.get(f"{V1}/changes/latest", params={"limit": 3}).json()
    assert len(latest["changes"]) == 3
    assert latest["next"] == everything["next"]


def test_changes_are_read_back_page_by_page_to_the_first(api: TestClient) -> None:
    everything = api.get(f"{V1}/changes", params={"limit": 1000}).json()
    read, before = [], ""
    for _ in range(100):
        told = api.get(f"{V1}/changes/latest", params={"limit": 2, "before": before}).json()
        read += told["changes"]
        before = told["older"]
        if not before:
            break
    whole = api.get(f"{V1}/changes/latest", params={"limit": 100}).json()["changes"]
    assert [each["at"] for each in whole] == sorted((each["at"] for each in whole), reverse=True)
    assert sorted(each["id"] for each in read) == sorted(each["id"] for each in everything["changes"])
    recent = api.get(f"{V1}/changes/latest", params={"since": "1h"}).json()
    assert [each["url"] for each in recent["changes"]] == [VAPUR]
    assert recent["older"] == ""


def test_the_atom_feed_is_sound_xml_whatever_titles_hold(api: TestClient) -> None:
    answer = api.get(f"{V1}/changes.atom")
    assert answer.headers["content-type"].startswith("application/atom+xml")
    feed = ElementTree.fromstring(answer.content)
    links = [link.get("href") for link in feed.iter("{http://www.w3.org/2005/Atom}link")]
    assert SCRIPT in links


def test_changes_say_what_came_and_went_and_where_to_read_more(api: TestClient) -> None:
    told = api.get(f"{V1}/changes", params={"words": "vapur", "kind": "changed"}).json()["changes"]
    last = next(each for each in reversed(told) if each["url"] == VAPUR)
    assert (last["added"], last["removed"], last["note"]) == (2, 1, "the title was 'Vapur saatleri'")
    assert last["diff"] == "-Beşiktaş 10:00\n+Beşiktaş 10:45 ve 11:00\n+yeni hat"
    assert "".join(text for text, _ in last["lines"][1]["pieces"]) == "Beşiktaş 10:45 ve 11:00"
    assert last["link"] == f"http://127.0.0.1:8400/#/page?url={quote(VAPUR, safe='')}&after=3"
    short = api.get(f"{V1}/changes", params={"words": "vapur", "kind": "changed", "diff": "false"}).json()["changes"]
    assert [each["id"] for each in short] == [each["id"] for each in told]
    assert {each["diff"] for each in short} == {""}
    wrong = api.get(f"{V1}/changes", params={"kind": "old"})
    assert (wrong.status_code, code_of(wrong)) == (400, "bad-query")


def test_the_atom_feed_holds_the_diff_as_escaped_html(api: TestClient) -> None:
    feed = ElementTree.fromstring(api.get(f"{V1}/changes.atom").content)
    entries = {entry.findtext(f"{ATOM}title"): entry.find(f"{ATOM}content") for entry in feed.iter(f"{ATOM}entry")}
    assert all(content is not None and content.get("type") == "html" for content in entries.values())
    texts = [content.text or "" for content in entries.values() if content is not None]
    assert any("<ins>" in text for text in texts)
    assert not any("<script" in text for text in texts)


@pytest.mark.parametrize("period", ["hourly", "daily"])
def test_a_digest_gathers_each_change_of_the_past_once(api: TestClient, period: str) -> None:
    digests = api.get(f"{V1}/changes/digests", params={"period": period}).json()["digests"]
    ids = [change["id"] for digest in digests for change in digest["changes"]]
    known = api.get(f"{V1}/changes", params={"limit": 1000}).json()["changes"]
    now = api.get(f"{V1}/status").json()["now"]
    assert all(digest["end"] <= now for digest in digests)
    assert sorted(ids) == sorted(
        each["id"] for each in known if any(d["start"] <= each["at"] < d["end"] for d in digests)
    )
    assert ids
    feed = ElementTree.fromstring(api.get(f"{V1}/changes.atom", params={"digest": period}).content)
    entries = list(feed.iter(f"{ATOM}entry"))
    assert [entry.findtext(f"{ATOM}summary") for entry in entries] == [digest["summary"] for digest in digests]
    assert len({entry.findtext(f"{ATOM}id") for entry in entries}) == len(digests)


def test_orders_are_kept_for_the_crawl(api: TestClient, data: Path) -> None:
    asked = [
        api.post(f"{V1}/pause"),
        api.post(f"{V1}/resume"),
        api.put(f"{V1}/budget", json={"per_hour": 500}),
        api.post(f"{V1}/seeds", json={"urls": ["new.example/start"]}),
        api.delete(f"{V1}/sites", params={"site": "example.org"}),
    ]
    assert [answer.status_code for answer in asked] == [202] * 5
    assert [answer.json()["order"] for answer in asked] == [1, 2, 3, 4, 5]
    commands = open_commands(DataFolder(data))
    given = [order for _, order in commands.pending()]
    commands.close()
    expected = [
        Pause(),
        Resume(),
        ChangeBudget(500),
        AddSeeds(("https://new.example/start",)),
        DropSite("example.org"),
    ]
    assert given == expected


def test_settings_are_shown_without_secrets_and_changed(
    api: TestClient, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed = api.put(f"{V1}/settings", json={"values": {"politeness.delay": 2, "fetch.slots": 3}})
    assert changed.status_code == 200
    facts = [(each["key"], each["value"], each["at_once"]) for each in changed.json()["changes"]]
    assert facts == [("politeness.delay", 2.0, True), ("fetch.slots", 3, False)]
    assert DataFolder(data).settings().politeness.delay == 2.0
    monkeypatch.setenv("LEVADA_STORE_SERVERS", "postgresql://me:hushhush@127.0.0.1/levada")
    told = api.get(f"{V1}/settings")
    assert "hushhush" not in told.text
    rows = {each["key"]: each for each in told.json()["settings"]}
    assert (rows["politeness.delay"]["source"], rows["politeness.delay"]["where"]) == ("collection", "the API")
    assert rows["store.servers"]["source"] == "environment"


@pytest.mark.parametrize(
    ("values", "status"),
    [({"politeness.dely": 1}, 400), ({"crawl.scope": "host"}, 400), ({}, 400), ({"guard.allow": ["127.0.0.1:1"]}, 400)],
)
def test_settings_that_are_wrong_or_closed_do_not_change(
    values: dict[str, object], status: int, api: TestClient, data: Path
) -> None:
    before = (data / "settings.json").read_bytes()
    assert api.put(f"{V1}/settings", json={"values": values}).status_code == status
    assert (data / "settings.json").read_bytes() == before


def test_no_more_orders_are_taken_than_anybody_obeys(api: TestClient, data: Path) -> None:
    commands = open_commands(DataFolder(data))
    for _ in range(1000):
        commands.submit(Pause())
    commands.close()
    answer = api.post(f"{V1}/pause")
    assert (answer.status_code, code_of(answer)) == (429, "too-many")


def test_hooks_come_and_go_and_their_secret_is_shown_once(api: TestClient) -> None:
    made = api.post(f"{V1}/webhooks", json={"url": "https://told.example/x", "site": "example.org"})
    assert made.status_code == 201
    hook = made.json()["hook"]
    assert made.json()["secret"]
    listed = api.get(f"{V1}/webhooks").json()["hooks"]
    assert listed == [hook]
    assert api.delete(f"{V1}/webhooks", params={"id": hook["id"]}).json() == {"hooks": []}
    assert api.delete(f"{V1}/webhooks", params={"id": hook["id"]}).status_code == 404


def test_whoever_has_the_answer_is_told_so_in_a_few_bytes(api: TestClient) -> None:
    first = api.get(f"{V1}/page", params={"url": VAPUR})
    again = api.get(f"{V1}/page", params={"url": VAPUR}, headers={"if-none-match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/nothing/here", "no-such-path"),
        ("/page?url=https://example.org/none", "not-found"),
        ("/page?url=ftp://example.org", "bad-url"),
        ("/page", "usage-error"),
        ("/page?url=a&url=b", "usage-error"),
        ("/search?q=x&limit=0", "usage-error"),
        ("/search?q=x&limit=many", "usage-error"),
        ("/search?q=x&colour=red", "usage-error"),
        ("/search?q=x&sort=newest", "usage-error"),
        ("/search?q=x&one_per=host", "usage-error"),
        ("/search?q=x&facets=site,colour", "usage-error"),
        ("/search?q=(x", "bad-query"),
        ("/search?q=titel:x", "bad-query"),
        ("/search?q=%20", "usage-error"),
        ("/site?site=nowhere.example", "not-found"),
        ("/changes?after=x", "usage-error"),
        ("/changes?least=2", "usage-error"),
        ("/changes?site=http://example.org/", "bad-query"),
        ("/changes?words=%22", "bad-query"),
        ("/changes/latest?site=a/b", "bad-query"),
        ("/changes/latest?since=soon", "usage-error"),
        ("/changes/latest?before=x", "usage-error"),
        ("/changes/latest?words=%F0%9F%9A%A2", "bad-query"),
        ("/changes/stream?site=http://example.org/", "bad-query"),
        ("/changes/stream?words=%22", "bad-query"),
        ("/changes.atom?site=http://example.org/", "bad-query"),
        ("/changes.atom?q=%22", "bad-query"),
        ("/trends?window=soon", "usage-error"),
        ("/trends?site=http://example.org/", "bad-query"),
    ],
)
def test_what_is_asked_wrongly_is_said(api: TestClient, path: str, code: str) -> None:
    answer = api.get(V1 + path)
    assert 400 <= answer.status_code < 500
    assert code_of(answer) == code


@pytest.mark.parametrize("wanted", [{"site": "http://example.org/"}, {"words": '"'}])
def test_a_webhook_that_would_never_or_always_be_told_is_refused(api: TestClient, wanted: dict[str, str]) -> None:
    answer = api.post(f"{V1}/webhooks", json={"url": "https://told.example/x", **wanted})
    assert (answer.status_code, code_of(answer)) == (400, "bad-query")
    assert api.get(f"{V1}/webhooks").json() == {"hooks": []}


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[1]", b"null", b'{"urls": "x"}', b'{"urls": []}', b"\xff", b'{"urls": ["\xff"]}', b"[" * 10_000],
)
def test_a_body_that_is_not_what_was_asked_for_is_refused(api: TestClient, body: bytes) -> None:
    answer = api.post(f"{V1}/seeds", content=body, headers={"content-type": "application/json"})
    assert (answer.status_code, code_of(answer)) == (400, "usage-error")


def test_a_body_of_another_kind_is_refused(api: TestClient) -> None:
    answer = api.post(f"{V1}/seeds", content=b'{"urls": ["a.example"]}', headers={"content-type": "text/plain"})
    assert answer.status_code == 400


def test_a_body_of_ten_megabytes_is_refused_unread(api: TestClient) -> None:
    answer = api.post(f"{V1}/seeds", content=b"x" * 10_000_000, headers={"content-type": "application/json"})
    assert (answer.status_code, code_of(answer)) == (413, "too-large")


def test_a_long_body_that_does_not_say_so_is_cut_off(api: TestClient) -> None:
    pieces = (b"x" * 65_536 for _ in range(160))
    answer = api.post(f"{V1}/seeds", content=pieces, headers={"content-type": "application/json"})
    assert (answer.status_code, code_of(answer)) == (413, "too-large")


def test_a_method_that_a_path_does_not_know_is_named(api: TestClient) -> None:
    answer = api.delete(f"{V1}/search")
    assert (answer.status_code, code_of(answer)) == (405, "no-such-method")
    assert "GET" in answer.headers["allow"]


def test_an_empty_folder_says_how_to_begin_and_works_once_something_is_there(open_server: Open, tmp_path: Path) -> None:
    api = open_server(tmp_path / "nothing")
    assert api.get(f"{V1}/health").json()["status"] == "ok"
    status = api.get(f"{V1}/status").json()
    assert (status["standing"], status["trouble"]) == (None, None)
    answer = api.get(f"{V1}/search", params={"q": "x"})
    assert (answer.status_code, code_of(answer)) == (404, "not-found")
    assert "levada crawl" in answer.json()["error"]["message"]
    assert api.post(f"{V1}/pause").status_code == 404


@pytest.mark.parametrize("file", ["levada.db", "settings.json"])
def test_a_collection_that_cannot_be_read_says_so_in_its_status(open_server: Open, data: Path, file: str) -> None:
    (data / file).write_bytes(b"something else" * 1000)
    status = open_server(data).get(f"{V1}/status").json()
    assert status["standing"] is None
    assert str(data / file) in status["trouble"]
    assert ": " in status["trouble"], "it does not say what to do"


def test_a_collection_that_is_damaged_while_it_is_served_says_so_too(open_server: Open, data: Path) -> None:
    api = open_server(data)
    assert api.get(f"{V1}/status").json()["trouble"] is None
    for beside in data.glob("levada.db-*"):
        beside.unlink()
    with (data / "levada.db").open("r+b") as file:
        file.truncate(3000)
    assert "damaged" in api.get(f"{V1}/status").json()["trouble"]


def test_every_answer_tells_browsers_to_be_strict(api: TestClient) -> None:
    for path, scripts in (("/", True), ("/static/app.js", True), (f"{V1}/status", False), (f"{V1}/nothing", False)):
        headers = api.get(path).headers
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'none'")
        assert "frame-ancestors 'none'" in policy
        assert ("script-src 'self'" in policy) is scripts
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cross-origin-resource-policy"] == "same-origin"


def test_nothing_outside_the_static_files_is_served(api: TestClient) -> None:
    for path in ("/static/../app.py", "/static/%2e%2e/app.py", "/static/..%2fapp.py", "/static/", "/static/x/y"):
        assert api.get(path).status_code == 404


def test_a_page_is_forgotten_after_it_was_said_how_much_that_is(api: TestClient) -> None:
    asked = {"urls": [VAPUR]}
    told = api.post(f"{V1}/forget", json={**asked, "dry_run": True}).json()
    assert (told["dry_run"], told["pages"]) == (True, 1)
    assert api.get(f"{V1}/page", params={"url": VAPUR}).status_code == 200
    told = api.post(f"{V1}/forget", json=asked).json()
    assert (told["dry_run"], told["pages"], told["finished"]) == (False, 1, True)
    assert api.get(f"{V1}/page", params={"url": VAPUR}).status_code == 404
    assert all(hit["url"] != VAPUR for hit in api.get(f"{V1}/search", params={"q": "vapur"}).json()["hits"])


def test_what_cannot_be_forgotten_is_refused_in_a_sentence(api: TestClient) -> None:
    assert code_of(api.post(f"{V1}/forget", json={"site": "nowhere.example"})) == "not-found"
    assert code_of(api.post(f"{V1}/forget", json={"older_than": "soon"})) == "usage-error"
    assert code_of(api.post(f"{V1}/forget", json={})) == "usage-error"
