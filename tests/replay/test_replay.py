"""Real servers answer as the placement says, as often as the evaluator predicts."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from random import Random
from typing import Any

import psycopg
import pytest

from levada.core.errors import Refused, SettingsError, StoreError
from levada.lab.sharding.ads import AdsModel, ads
from levada.lab.sharding.comparison import Board
from levada.replay import client as shard_line
from levada.replay.cache_warming import WarmUp, warm_up
from levada.replay.client import Client
from levada.replay.questions import QuestionWriter, ValueFiller, evenly_drawn, stored
from levada.replay.run import SCHEMES, Replay, ReplayOptions, replay, schemes_of
from levada.replay.schemes import Scheme
from levada.replay.servers import SCHEMA
from levada.sharding.advice import Advice
from levada.sharding.placement import hashed_placement
from levada.sharding.queries import AllOf, AnyOf, Condition, Filter, NoneOf, QueryEntry, Sort
from levada.sharding.sample import Sample
from tests.sharding.boards import small_board

pytest_plugins = ["tests.servers.fixtures"]

KNOWN = Board(small_board(5_000, seed=31))
FRESH = Board(AdsModel(documents=1_500, queries=4_000, seed=32))
DOCUMENTS: list[dict[str, Any]] = list(ads(FRESH.model))


@contextmanager
def database(address: str, name: str) -> Iterator[str]:
    """A database of our own on this server."""
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {name}")
        connection.execute(f"CREATE DATABASE {name}")
        try:
            yield address.rpartition("/")[0] + f"/{name}"
        finally:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(scope="module")
def targets(postgresql_trio: list[str]) -> Iterator[list[str]]:
    a, b, c = postgresql_trio
    with database(a, "replayed") as one, database(b, "replayed") as two, database(c, "replayed") as three:
        yield [one, two, three]


@cache
def advice(shards: int) -> Advice:
    return KNOWN.advice(shards)


def on_board(targets: list[str], shards: int, names: tuple[str, ...] = SCHEMES, **replay_options: Any) -> Replay:
    schemes, _ = schemes_of(advice(shards), names, "_id")
    whole = {"queries": 4_000, "clients": 2, "rounds": ("cold",), **replay_options}
    return replay(schemes, FRESH.log, DOCUMENTS, FRESH.sample, ReplayOptions(tuple(targets), **whole))


def tables_on(target: str) -> int:
    with psycopg.connect(target) as connection:
        row = connection.execute("SELECT count(*) FROM pg_namespace WHERE nspname = %s", (SCHEMA,)).fetchone()
    assert row is not None
    return int(row[0])


@pytest.mark.parametrize(("shards", "names"), [(3, SCHEMES), (8, ("none", "ours"))])
def test_what_the_evaluator_predicts_from_one_draw_is_measured_on_another(
    targets: list[str], shards: int, names: tuple[str, ...]
) -> None:
    done = on_board(targets, shards, names)
    assert not done.partial, done.notes
    assert [each.scheme for each in done.played] == list(names)
    for each in done.played:
        (found,) = each.rounds
        per_query, load = each.predicted
        assert found.queries == 4_000
        assert found.shards_per_query == pytest.approx(per_query, rel=0.02), each.scheme
        assert found.load_max_mean == pytest.approx(load, rel=0.10), each.scheme
    # The same documents, however they lie: no shard was left out that had one.
    assert len({each.rounds[0].answers for each in done.played}) == 1
    assert done.played[0].rounds[0].found > 4_000
    assert {tables_on(target) for target in targets} == {0}


def statements(target: str, table: str) -> int:
    """How many questions to this table the server itself has counted."""
    with psycopg.connect(target, autocommit=True) as connection:
        row = connection.execute(
            """SELECT coalesce(sum(calls), 0)::bigint FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid
            WHERE d.datname = current_database() AND query LIKE 'SELECT %%' AND strpos(query, %s) > 0""",
            (f"{SCHEMA}.{table} ",),
        ).fetchone()
    assert row is not None
    return int(row[0])


def test_the_evaluator_counts_the_touches_of_its_own_log_exactly(targets: list[str]) -> None:
    for target in targets[:2]:
        with psycopg.connect(target, autocommit=True) as connection:
            connection.execute("CREATE EXTENSION pg_stat_statements")
            connection.execute("SELECT pg_stat_statements_reset()")
    schemes, _ = schemes_of(FRESH.advice(2), ("paper",), "_id")
    every = ReplayOptions(tuple(targets[:2]), queries=10**6, clients=2, rounds=("cold",))
    done = replay(schemes, FRESH.log, DOCUMENTS, FRESH.sample, every)
    (paper,) = done.played
    assert paper.rounds[0].shards_per_query == pytest.approx(paper.predicted[0], rel=1e-9)
    assert paper.rounds[0].load_max_mean == pytest.approx(paper.predicted[1], rel=1e-9)
    assert paper.rounds[0].touches == tuple(statements(targets[shard], f"paper_{shard}") for shard in (0, 1))


def test_warm_rounds_cost_the_server_cpu_that_can_be_read_here(targets: list[str]) -> None:
    done = on_board(targets, 3, ("id", "ours"), rounds=("cold", "warm", "warm"), queries=500)
    ours = done.played[1]
    assert [each.name for each in ours.rounds] == ["cold", "warm", "warm"]
    warm = ours.quickest("warm")
    assert warm is not None
    assert warm.cpu_total is not None
    assert warm.cpu_total >= (warm.cpu_busiest or 0.0) > 0.0
    assert all(memory is not None and memory > 0 for memory in warm.memory)
    assert [(each.scheme, each.against) for each in done.ratios] == [("ours", "id")]


def test_of_servers_elsewhere_it_is_known_for_how_long_they_were_busy(
    targets: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shard_line, "backend_pid", lambda connection: None)
    (played,) = on_board(targets[:2], 2, ("id",), queries=200).played
    assert played.rounds[0].cpu_total is None
    assert played.rounds[0].memory == (None, None)
    assert (played.rounds[0].busy_total or 0.0) > 0.0


def test_a_server_that_is_down_makes_the_figures_partial(targets: list[str]) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        away = f"postgresql://postgres@127.0.0.1:{nobody.getsockname()[1]}/postgres"
        done = on_board([*targets[:2], away], 3, ("id",), queries=200)
        with pytest.raises(StoreError, match="no server can be used"):
            on_board([away], 3, ("id",), queries=200)
    assert done.partial
    (played,) = done.played
    assert played.rounds[0].touches[2] == 0
    assert played.rounds[0].partial > 150
    assert any("is away" in note for note in done.notes)
    assert any("were not answered by every shard" in note for note in done.notes)


def test_a_server_that_goes_away_in_the_middle_costs_its_part_of_the_answers(
    targets: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = Client.ask

    def ask_and_end(self: Client, place: int, question: Any) -> None:
        if place == 100:
            with psycopg.connect(targets[1], autocommit=True) as connection:
                connection.execute(
                    """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                    WHERE datname = 'replayed' AND pid <> pg_backend_pid()"""
                )
        ask(self, place, question)

    monkeypatch.setattr(Client, "ask", ask_and_end)
    done = on_board(targets, 3, ("id",), queries=300)
    (found,) = done.played[0].rounds
    assert found.queries == 300
    assert 0 < found.partial <= 201
    assert found.touches[0] > found.touches[1] > 0
    assert any("shard 1" in note for note in done.notes)


def test_a_schema_that_is_there_already_is_not_touched(targets: list[str]) -> None:
    with psycopg.connect(targets[2], autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {SCHEMA}")
        with pytest.raises(Refused, match="--force drops it"):
            on_board(targets, 3, ("id",), queries=10)
        assert [tables_on(target) for target in targets] == [0, 0, 1]
    kept = on_board(targets, 3, ("id",), queries=10, force=True, keep=True)
    assert [tables_on(target) for target in targets] == [1, 1, 1]
    assert any("--keep" in note for note in kept.notes)
    on_board(targets, 3, ("id",), queries=10, force=True)
    assert [tables_on(target) for target in targets] == [0, 0, 0]


def test_an_address_that_is_none_is_refused_without_its_password() -> None:
    with pytest.raises(SettingsError) as refused:
        on_board(["postgresql://me:secret@x/@y"], 3, ("id",))
    assert "secret" not in str(refused.value)


MIXED: list[dict[str, Any]] = [
    {"id": number, "code": value, "tags": [number], "at": {"city": "x" * 300 + str(number % 3)}}
    for number, value in enumerate([1, "1", 1.0, None, True, "one", 2, "2", b"2".decode(), 10])
]
ASKED: list[tuple[Filter | None, list[int]]] = [
    (Condition("code", "eq", (1,)), [2, 0]),
    (Condition("code", "eq", ("1",)), [1]),
    (Condition("code", "in", ("2", 2, "nothing")), [8, 7, 6]),
    (Condition("code", "eq", (None,)), [3]),
    (Condition("code", "range", (2, None)), [9, 6]),
    (Condition("code", "prefix", ("on",)), [5]),
    (Condition("none", "exists", (False,)), list(range(9, -1, -1))),
    (Condition("none", "exists", (True,)), []),
    (Condition("at.city", "eq", ("x" * 300 + "1",)), [7, 4, 1]),
    (AnyOf((Condition("code", "eq", (10,)), Condition("id", "eq", (0,)))), [9, 0]),
    (AllOf((Condition("id", "range", (5, 8)), NoneOf((Condition("code", "eq", ("2",)),)))), [6, 5]),
    (NoneOf((AllOf((Condition("code", "eq", ("2",)), Condition("code", "other:odd"))),)), list(range(9, -1, -1))),
    (None, list(range(9, -1, -1))),
]


@pytest.mark.parametrize("shards", [1, 4])
def test_fields_of_mixed_kinds_are_found_by_kind(targets: list[str], shards: int) -> None:
    queries = [QueryEntry("c", "find", filter=asked) for asked, _ in ASKED]
    queries += [QueryEntry("c", "count"), QueryEntry("c", "find", sort=(Sort("code", True),), limit=4)]
    found: dict[int, tuple[int, ...]] = {}

    def remember(self: Client, place: int, numbers: tuple[int, ...], *, whole: bool) -> None:
        assert whole
        found[place] = numbers

    scheme = Scheme("ours", "id", hashed_placement("id", shards), (1.0, 1.0))
    sample = Sample(MIXED, ["code", "none", "at.city", "tags"], "id")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Client, "_count", remember)
        done = replay([scheme], queries, MIXED, sample, ReplayOptions(tuple(targets[:1]), clients=1, rounds=("cold",)))
    for place, (_, expected) in enumerate(ASKED):
        assert list(found[place]) == expected, queries[place]
    assert found[len(ASKED)] == (len(MIXED),)
    assert list(found[len(ASKED) + 1]) == [3, 2, 0, 6]  # null, then numbers; of equals the newest first
    assert any("tags: arrays" in note for note in done.notes)


def test_a_query_that_was_asked_often_is_drawn_often() -> None:
    log = [QueryEntry("c", "find", times=9), QueryEntry("c", "insert", times=50), QueryEntry("c", "count")]
    assert [query.op for query in evenly_drawn(log, 100)] == ["find"] * 9 + ["count"]
    assert len(evenly_drawn(log, 5)) == 5
    assert evenly_drawn([], 5) == []


def test_values_that_the_log_does_not_tell_are_those_of_one_document() -> None:
    filler = ValueFiller(FRESH.sample)
    hidden = AllOf((Condition("category_id", "eq"), Condition("region_id", "eq", ("#0123456789abcdef",))))
    filled = filler.fill(QueryEntry("c", "find", filter=hidden)).filter
    assert isinstance(filled, AllOf)
    category, region = (part.values[0] for part in filled.of if isinstance(part, Condition))
    assert any(each["category_id"] == category and each["region_id"] == region for each in DOCUMENTS)
    filler.fill(QueryEntry("c", "find", filter=Condition("_id", "range", ())))
    assert filler.guessed == 2


def test_an_id_that_the_sample_does_not_hold_is_the_next_one() -> None:
    filler = ValueFiller(FRESH.sample)
    held = DOCUMENTS[5]["_id"]
    for asked in (held, held - 1):
        filled = filler.fill(QueryEntry("c", "find", filter=Condition("_id", "eq", (asked,)))).filter
        assert isinstance(filled, Condition)
        assert filled.values == (held,)
    assert filler.renamed == 1


def test_queries_of_one_shape_share_their_sql() -> None:
    writer = QuestionWriter({"a": "f0"}, 20)
    one, other = (writer.write(QueryEntry("c", "find", filter=Condition("a", "eq", (n,)))) for n in (1, 2))
    assert one.sql is other.sql
    assert one.parameters == (stored(1),) != other.parameters
    three, four = (writer.write(QueryEntry("c", "find", filter=Condition("a", "in", tuple(range(n))))) for n in (3, 4))
    assert three.sql is four.sql
    assert writer.loosened == 0
    assert "WHERE true" in writer.write(QueryEntry("c", "find", filter=Condition("b", "regex"))).sql
    assert writer.loosened == 1
    assert len(stored("x" * 10_000)) <= 200


@pytest.fixture(scope="module")
def shop(postgresql: str) -> Iterator[str]:
    with database(postgresql, "shop") as address:
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute("CREATE TABLE ads (id bigint, city text, price double precision, sold boolean)")
            connection.execute(
                "INSERT INTO ads SELECT n, 'c' || n % 10, n / 2.0, n % 2 = 0 FROM generate_series(1, 100) n"
            )
        yield address


def asked_of_shop(number: int) -> QueryEntry:
    chance = Random(number)
    both = AllOf((Condition("city", "eq", (f"c{chance.randrange(10)}",)), Condition("price", "range", (1.5, None))))
    return QueryEntry("public.ads", "find", filter=both, sort=(Sort("id", False),))


def test_a_node_is_warmed_up_with_a_bounded_number_of_queries(shop: str) -> None:
    done = warm_up(map(asked_of_shop, range(100)), shop, WarmUp(queries=20, rate=1e6, limit=3))
    assert (done.asked, done.ended, done.failed, done.rows) == (20, "queries", 0, 60)
    odd = [
        QueryEntry("ads", "find", filter=Condition("sold", "in", (True, None))),
        QueryEntry("ads", "update", filter=Condition("city", "prefix", ("c1",)), changes=("city",)),
        QueryEntry("ads", "find", filter=Condition("price", "eq", ("cheap",))),
        QueryEntry("ads", "find", filter=Condition("city", "eq")),
        QueryEntry('other"; DROP TABLE ads', "find"),
    ]
    done = warm_up(odd, shop, WarmUp(rate=1e6))
    assert (done.asked, done.rows, done.failed, done.hidden, done.foreign) == (3, 60, 1, 1, 1)
    assert "cheap" in done.trouble
    assert done.ended == "log"


def test_a_warm_up_is_no_faster_than_said_and_ends_in_time(shop: str) -> None:
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    replay_options = WarmUp(queries=10**6, seconds=10.0, rate=5.0)
    done = warm_up(map(asked_of_shop, range(1000)), shop, replay_options, monotonic=lambda: now[0], sleep=sleep)
    assert done.ended == "seconds"
    assert done.asked == 50
    assert now[0] == pytest.approx(9.8)
