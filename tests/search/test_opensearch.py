"""The index in OpenSearch: what its contract does not say, because only a server can be away, late or several."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from levada.core.errors import IndexAway, LevadaError, SettingsError, StoreDamaged, StoreTooNew
from levada.core.hashing import term_number
from levada.core.protocols import Documents
from levada.core.records import Change
from levada.core.search_records import Query
from levada.follow.index import catch_up
from levada.search.opensearch import generations
from levada.search.opensearch.index import OpenSearchIndex
from levada.search.tantivy.index import TantivyIndex
from levada.testing.index import ALL, BRIDGE, HARBOUR, change, removed, urls
from tests.fetch.certificates import Authority
from tests.fetch.servers import answer, web
from tests.needs import package
from tests.servers.private import free_ports

pytest_plugins = ["tests.servers.fixtures"]


class Log:
    """Documents that are nothing but their change log."""

    def __init__(self, *changes: Change) -> None:
        self.all = changes

    def changes(self, after: int, limit: int) -> Sequence[Change]:
        return [each for each in self.all if each.seq > after][:limit]


def followed(index: OpenSearchIndex, *changes: Change) -> int:
    return catch_up(cast(Documents, Log(*changes)), index, 2)


def opened(address: str, name: Path | str, *, shard: int = 0, **options: Any) -> OpenSearchIndex:
    return OpenSearchIndex({"hosts": [address], **options}, path=name, shard=shard, writer=True)


def test_a_late_write_brings_nothing_back(tmp_path: Path, opensearch: str) -> None:
    with closing(opened(opensearch, tmp_path)) as one, closing(opened(opensearch, tmp_path)) as late:
        one.apply([*ALL, removed(1, seq=4, site="www.a.org"), change(2, "only trams", seq=5)])
        late.apply(ALL)
        assert urls(one, "ferry") == set()
        assert urls(one, "trams") == {BRIDGE.url}
        assert one.position() == late.position() == 5


def test_each_change_log_has_a_position_of_its_own(tmp_path: Path, opensearch: str) -> None:
    with closing(opened(opensearch, tmp_path)) as first, closing(opened(opensearch, tmp_path, shard=1)) as second:
        first.apply(ALL[:2])
        assert (first.position(), second.position()) == (2, 0)
        second.apply([change(1 << 54, "the ferry of another shard", seq=1, site="c.org")])
        assert (first.position(), second.position()) == (2, 1)
        assert first.search(Query("ferry")).total == second.search(Query("ferry")).total == 3


def test_a_rebuilt_index_takes_the_place_of_the_old_one_when_it_has_all_its_pages(
    tmp_path: Path, opensearch: str
) -> None:
    with closing(opened(opensearch, tmp_path)) as index, closing(opened(opensearch, tmp_path, shard=1)) as other:
        followed(index, *ALL)
        other.apply([change(1 << 54, "the ferry of another shard", seq=1, site="c.org")])
        index.ask_for_rebuild()
        assert index.is_to_be_rebuilt()
        with pytest.raises(StoreDamaged, match="still holds what was forgotten"):
            index.position()
        kept = [HARBOUR, removed(2, seq=2)]  # the log has lost its last change since
        followed(index, *kept)
        assert urls(index, "vapur"), "searched until the other log is there too"
        followed(other, change(1 << 54, "the ferry of another shard", seq=1, site="c.org"))
        assert not index.is_to_be_rebuilt()
        assert urls(index, "vapur") == set()
        assert index.search(Query("ferry")).total == 2
        assert (index.position(), other.position()) == (3, 1)


def test_an_outdated_index_is_searched_until_the_new_one_is_there(
    tmp_path: Path, opensearch: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(opened(opensearch, tmp_path)) as index:
        followed(index, *ALL)
        monkeypatch.setattr(generations, "FORMAT", generations.FORMAT + 1)
        seen: list[int] = []
        taken = catch_up(
            cast(Documents, Log(*ALL)), index, 1, lambda seq: seen.append(index.search(Query("-nothing")).total)
        )
        assert (taken, seen) == (3, [3, 3, 3])
        monkeypatch.undo()
        with pytest.raises(StoreTooNew, match="newer Levada"):
            index.position()


def test_a_writer_that_slept_through_a_rebuild_harms_nothing(tmp_path: Path, opensearch: str) -> None:
    with closing(opened(opensearch, tmp_path)) as index, closing(opened(opensearch, tmp_path)) as asleep:
        followed(index, *ALL)

        def changes() -> Any:
            yield change(2, "an old version", seq=2)
            index.clear()
            followed(index, HARBOUR)

        assert asleep.position() == 3
        with pytest.raises(IndexAway, match="was built anew meanwhile"):
            asleep.apply(changes())
        assert (urls(index, "-nothing"), index.position()) == ({HARBOUR.url}, 1)
        assert followed(asleep, *ALL) == 2


def test_links_count_as_they_do_in_the_index_on_this_machine(tmp_path: Path, opensearch: str) -> None:
    target = "https://a.example/target"
    packed = msgspec.msgpack.encode([(term_number(target), "Sea bus")])
    pages = [
        change(1, "about a sea bus", url=target),
        change(2, "about a sea bus", url="https://a.example/other"),
        *(change(n, "another page", packed_anchors=packed) for n in range(3, 9)),
    ]
    with closing(opened(opensearch, tmp_path)) as index, closing(TantivyIndex(tmp_path, writer=True)) as here:
        found = []
        for each in (index, here):
            each.apply(pages)
            found.append([(hit.url, round(hit.score, 4)) for hit in each.search(Query('"sea bus"')).hits])
        assert [url for url, _ in found[0]] == [url for url, _ in found[1]] == [target, "https://a.example/other"]
        ratios = [scores[0][1] / scores[1][1] for scores in found]
        assert ratios[0] == pytest.approx(ratios[1], rel=1e-3)
        assert ratios[0] > 1.5
        index.apply([change(n, "another page", seq=20 + n) for n in range(3, 9)])
        assert len({round(hit.score, 4) for hit in index.search(Query('"sea bus"')).hits}) == 1


def info(**version: str) -> dict[str, bytes]:
    return {"/": answer(msgspec.json.encode({"version": version}), "Content-Type: application/json")}


def said(address: str, **options: Any) -> str:
    package("opensearchpy")
    with closing(opened(address, "x", **options)) as index, pytest.raises(LevadaError) as raised:
        index.position()
    sentence = str(raised.value)
    assert "\n" not in sentence
    assert address in sentence
    return sentence


def test_a_server_that_is_not_there_is_named_with_what_to_do() -> None:
    (port,) = free_ports(1)
    sentence = said(f"http://127.0.0.1:{port}")
    assert "cannot be reached" in sentence
    assert "plugins.opensearch.hosts" in sentence
    assert "waits in the change log" in sentence


@pytest.mark.parametrize(
    ("version", "sentence"),
    [
        ({"number": "1.3.20", "distribution": "opensearch"}, "is 1.3.20, and too old: update it to 2.19"),
        ({"number": "8.15.0"}, "is Elasticsearch 8.15.0 or another server, not OpenSearch"),
        ({}, "is no OpenSearch"),
    ],
)
def test_a_server_of_another_kind_or_time_is_refused(version: dict[str, str], sentence: str) -> None:
    with web(info(**version)) as server:
        assert sentence in said(f"http://127.0.0.1:{server.port}")


def test_a_server_that_asks_for_a_password_is_given_the_one_of_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    with web({"/": answer(b"Unauthorized", "WWW-Authenticate: Basic", status="401 Unauthorized")}) as server:
        address = f"http://127.0.0.1:{server.port}"
        assert "asks for a user and a password: set plugins.opensearch.user" in said(address)
        monkeypatch.setenv("SEARCH_PASSWORD", "dragon-7")
        sentence = said(address, user="levada", password="env:SEARCH_PASSWORD")
        assert "does not know this user and password" in sentence
        assert "dragon-7" not in sentence


def test_a_certificate_that_nobody_vouches_for_is_refused(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    good = info(number="2.19.6", distribution="opensearch")
    with web(good, authority.server("127.0.0.1")) as server:
        address = f"https://127.0.0.1:{server.port}"
        assert "certificate that is not trusted" in said(address)
        assert "certificate" not in said(address, ca_file=authority.ca_file)


def test_an_index_that_lost_its_nodes_is_reported(tmp_path: Path) -> None:
    lost = {"error": {"type": "search_phase_execution_exception", "reason": "all shards failed"}, "status": 503}
    answers = info(number="2.19.6", distribution="opensearch")
    answers["/_msearch"] = answer(msgspec.json.encode({"responses": [lost]}), "Content-Type: application/json")
    with (
        web(answers) as server,
        closing(opened(f"http://127.0.0.1:{server.port}", tmp_path)) as index,
        pytest.raises(IndexAway, match="bring its nodes back"),
    ):
        index.search(Query("ferry"))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"host": ["http://a:1"]}, "unknown field `host`"),
        ({"hosts": ["search-1:9200"]}, "takes addresses like https://search-1:9200"),
        ({"hosts": ["https://me:pw@search-1"]}, "must hold no password"),
        ({"hosts": []}, "names no server"),
        ({"user": "levada"}, "belong together"),
        ({"user": "levada", "password": "dragon-7"}, "the place of a secret"),
        ({"prefix": "Levada_"}, "lower-case letters"),
        ({"shards": 0}, "must be positive"),
    ],
)
def test_wrong_options_are_refused_before_anything_is_asked(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(SettingsError, match=r"^plugins\.opensearch: ") as raised:
        OpenSearchIndex(options)
    assert sentence in str(raised.value)
    assert "dragon-7" not in str(raised.value)
