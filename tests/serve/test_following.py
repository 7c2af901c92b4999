"""Ten thousand changes, a consumer that is killed again and again: each change once, by its id."""

from __future__ import annotations

import json
from random import Random
from urllib.request import Request, urlopen

import pytest

from levada.core.folder import DataFolder
from levada.store.sqlite import SqliteStore
from levada.testing.store.visits import changed, first, links
from tests.serve.served import served

PAGES, ROUNDS = 1_000, 10


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> object:
    folder = DataFolder(tmp_path_factory.mktemp("changing") / "levada-data")
    folder.make()
    store = SqliteStore(folder.database)
    store.add(links("a", PAGES), [], 0.0)
    store.commit([first(lease, 1.0, "text") for lease in store.lease(0.0, PAGES, 60.0)])
    for step in range(1, ROUNDS):
        now = step * 1000.0
        store.commit([changed(lease, now, f"text {step}") for lease in store.lease(now, PAGES, 60.0)])
    store.close()
    with served(folder.path) as address:
        yield address


def read_events(address: str, place: str, most: int) -> list[tuple[str, str]]:
    """At most so many events as (place, id of the change); then the line is cut in the middle of whatever comes."""
    request = Request(f"{address}/api/v1/changes/stream?limit=500", headers={"Last-Event-ID": place} if place else {})
    events: list[tuple[str, str]] = []
    with urlopen(request, timeout=20) as stream:
        at = ""
        while len(events) < most:
            line = stream.readline().decode().rstrip("\n")
            if line.startswith("id: "):
                at = line[4:]
            elif line.startswith("data: "):
                events.append((at, json.loads(line[6:])["id"]))
    return events


def test_a_listener_that_is_cut_off_at_random_meets_every_change_once(server: str) -> None:
    chance, seen, place = Random(7), list[str](), ""
    while len(seen) < PAGES * ROUNDS:
        wanted = min(chance.choice([1, 3, 499, 500, 501, 2000]), PAGES * ROUNDS - len(seen))
        events = read_events(server, place, wanted)
        seen += [id for _, id in events]
        place = events[-1][0]
    assert seen == [f"0-{seq}" for seq in range(1, PAGES * ROUNDS + 1)]


def test_a_reader_of_pages_that_dies_before_it_notes_its_place_repeats_by_the_same_ids(server: str) -> None:
    chance, seen, place = Random(3), list[str](), ""
    while True:
        limit = chance.randint(1, 1000)
        with urlopen(f"{server}/api/v1/changes?after={place}&limit={limit}", timeout=20) as answer:
            told = json.load(answer)
        if chance.random() < 0.2:
            continue  # killed: neither the changes nor the place were kept
        seen += [change["id"] for change in told["changes"]]
        place = told["next"]
        if not told["changes"]:
            break
    assert seen == [f"0-{seq}" for seq in range(1, PAGES * ROUNDS + 1)]
