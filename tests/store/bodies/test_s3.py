"""Bodies in a bucket of an S3 server that others wrote; what it refuses or is slow with is told in a sentence."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from levada.core.errors import BodiesAway, LevadaError, SettingsError, StoreError, StoreFull
from levada.core.settings import BodiesSettings
from levada.store.bodies import Bodies
from levada.store.bodies.opening import open_place, shared_bodies
from levada.store.bodies.places import MARKER, Place
from levada.store.bodies.s3 import S3Place
from levada.store.sqlite import SqliteStore
from levada.testing.store.visits import first, links, visited
from tests.needs import missing, package
from tests.servers.private import free_ports
from tests.servers.versitygw import ACCESS_KEY, BUCKET, SECRET_KEY, Server, s3_settings, use_keys
from tests.store.bodies.places import all_texts

pytest_plugins = ["tests.servers.fixtures"]


@pytest.fixture
def place(s3: str, tmp_path: Path) -> Place:
    return S3Place(BUCKET, tmp_path.name, s3_settings(s3))


def said(place: Place) -> list[tuple[type[Exception], str]]:
    """What it says to each kind of request."""
    heard: list[tuple[type[Exception], str]] = []
    for ask in (lambda: place.put("ab/cd/x", b"x"), lambda: place.get("ab/cd/x"), lambda: list(place.list())):
        with pytest.raises(LevadaError) as told:
            ask()
        assert "\n" not in str(told.value)
        assert SECRET_KEY not in str(told.value)
        heard.append((told.type, str(told.value)))
    return heard


def test_objects_are_put_replaced_listed_and_deleted(place: Place) -> None:
    assert place.get("ab/cd/one") is None
    assert place.size("ab/cd/one") is None
    place.put("ab/cd/one", b"first")
    place.put("ab/cd/one", b"second")
    place.put("ab/ef/two", b"")
    assert (place.get("ab/cd/one"), place.size("ab/cd/one"), place.get("ab/ef/two")) == (b"second", 6, b"")
    listed = [each for some in place.list() for each in some]
    assert sorted((each.key, each.size) for each in listed) == [("ab/cd/one", 6), ("ab/ef/two", 0)]
    place.delete(["ab/cd/one", "ab/cd/one", "never/was/there"])
    assert [each.key for some in place.list() for each in some] == ["ab/ef/two"]


def test_a_wrong_bucket_is_named(s3: str) -> None:
    for kind, words in said(S3Place("not-there", "news", s3_settings(s3))):
        assert kind is StoreError
        assert words == "there is no bucket not-there for s3://not-there/news: make it, or correct store.bodies"


@pytest.mark.parametrize("name", ["AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID"])
def test_wrong_keys_are_told_and_not_repeated(s3: str, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "something-wrong")
    for kind, words in said(S3Place(BUCKET, "news", s3_settings(s3))):
        assert kind is StoreError
        assert words.startswith(f"s3://{BUCKET}/news refuses access (")
        assert "something-wrong" not in words


def test_keys_may_be_named_by_their_place_or_stand_in_a_profile(
    s3: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.setenv("OURS", ACCESS_KEY)
    (tmp_path / "secret").write_text(SECRET_KEY)
    named = s3_settings(s3, access_key="env:OURS", secret_key=f"file:{tmp_path / 'secret'}")
    assert S3Place(BUCKET, "named", named).get("x") is None
    credentials = f"[default]\naws_access_key_id = x\n[news]\naws_access_key_id = {ACCESS_KEY}\n"
    (tmp_path / "credentials").write_text(f"{credentials}aws_secret_access_key = {SECRET_KEY}\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_PROFILE", "news")
    assert S3Place(BUCKET, "profile", s3_settings(s3)).get("x") is None
    monkeypatch.setenv("AWS_PROFILE", "other")
    with pytest.raises(SettingsError, match="the profile other of AWS_PROFILE has no access key"):
        S3Place(BUCKET, "profile", s3_settings(s3))


def test_a_secret_itself_is_no_setting() -> None:
    with pytest.raises(ValueError, match="takes the place of a secret, not the secret itself"):
        BodiesSettings(access_key="AKIA", secret_key="secret")


def test_a_server_that_goes_holds_up_commits_and_they_go_through_when_it_is_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package("obstore")
    if not Server.installed():
        missing("versitygw is not installed: run tests/servers/install-go.sh")
    use_keys(monkeypatch)
    server, port = Server(), free_ports(1)[0]
    place = S3Place(BUCKET, "news", s3_settings(server.start(tmp_path, port), seconds=1.0))
    with closing(SqliteStore(tmp_path / "pages.db", bodies=Bodies(place, least=0, cache_bytes=0))) as store:
        visited(store, "http://a/", "a", "before", 0.0)
        server.stop()
        store.add(links("b", 3), [], 1.0)
        results = [first(lease, 1.0, f"text {lease.page.id}") for lease in store.lease(1.0, 3, 60.0)]
        with pytest.raises(BodiesAway, match=r"s3://levada/news cannot be reached now"):
            store.commit(results)
        with pytest.raises(BodiesAway):
            store.document("http://a/")
        assert store.stats(1.0).stored == 1
        server = Server()
        server.start(tmp_path, port)
        assert store.commit(results) == [True] * 3
        assert len(all_texts(store)) == 4
    server.stop()


class _Answers(BaseHTTPRequestHandler):
    status, body = 500, b""

    def do_PUT(self) -> None:
        self.rfile.read(int(self.headers.get("content-length") or 0))
        self.send_response(self.status)
        self.send_header("content-length", str(len(self.body)))
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextmanager
def answering(status: int, code: str) -> Iterator[str]:
    """A server that gives the same answer to every write."""
    body = f"<Error><Code>{code}</Code><Message>no</Message></Error>".encode() if code else b""
    handler = type("Answers", (_Answers,), {"status": status, "body": body})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize(
    ("status", "code", "kind", "words"),
    [
        (403, "AccessDenied", StoreError, r"refuses access \(AccessDenied\): check the keys"),
        (507, "InsufficientStorage", StoreFull, "no space left for bodies in s3://levada/news"),
        (403, "QuotaExceeded", StoreFull, r"\(QuotaExceeded\): make room"),
        (400, "AuthorizationHeaderMalformed", StoreError, "check the endpoint and the region"),
        (503, "SlowDown", BodiesAway, r"cannot be reached now \(SlowDown\)"),
        (500, "", BodiesAway, r"cannot be reached now \(500\)"),
    ],
)
def test_each_refusal_has_its_sentence(
    monkeypatch: pytest.MonkeyPatch, status: int, code: str, kind: type[StoreError], words: str
) -> None:
    package("obstore")
    use_keys(monkeypatch)
    with answering(status, code) as endpoint:
        place = S3Place(BUCKET, "news", s3_settings(endpoint, seconds=1.0))
        with pytest.raises(kind, match=words) as told:
            place.put("ab/cd/x", b"x")
    assert told.type is kind


@pytest.mark.timeout(60)
def test_a_server_that_does_not_answer_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    package("obstore")
    use_keys(monkeypatch)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        place = S3Place(BUCKET, "news", s3_settings(f"http://127.0.0.1:{silent.getsockname()[1]}", seconds=0.2))
        with pytest.raises(BodiesAway, match="cannot be reached now"):
            place.put("ab/cd/x", b"x")


def test_an_address_says_which_place_it_is(s3: str) -> None:
    assert open_place("s3://levada/a/b/", s3_settings(s3)).name == "s3://levada/a/b"
    assert open_place("file:///a%20b/c", BodiesSettings()).name == "/a b/c"
    assert MARKER.endswith(".json")


def test_a_worker_without_the_folder_uses_only_a_place_that_a_collection_has(s3: str, tmp_path: Path) -> None:
    address, settings = f"s3://{BUCKET}/{tmp_path.name}", s3_settings(s3)
    assert shared_bodies("", settings) is None
    with pytest.raises(StoreError, match="holds no bodies of a collection"):
        shared_bodies(address, settings)
    open_place(address, settings).put(MARKER, b'{"levada_bodies": "mine"}')
    bodies = shared_bodies(address, settings)
    assert bodies is not None
    assert bodies.name == address
