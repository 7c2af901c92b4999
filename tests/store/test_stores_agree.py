"""Whatever is done to them, the stores in memory, on disk and on a server give the same answers."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import closing
from pathlib import Path
from typing import ClassVar

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test
from msgspec.structs import replace

from levada.core.reasons import Reason
from levada.core.records import (
    ChangeHint,
    FoundUrl,
    Lease,
    Outcome,
    PageRecord,
    PageState,
    Refusal,
    Signals,
    SiteRecord,
    Visit,
    VisitResult,
)
from levada.store.base import StoreLimits
from levada.store.memory import MemoryStore
from levada.store.postgresql import PostgresqlStore
from levada.store.sqlite import SqliteStore
from levada.testing.store.visits import new_version
from tests.invariants import check_invariants
from tests.schemas import Schemas

pytest_plugins = ["tests.servers.fixtures"]

SITES = ("a", "b", "c")
LIMITS = StoreLimits(max_pages_per_site=8, keep_versions=2, run=2, delay=3.0, known_urls=6)

founds = st.builds(
    lambda site, n, priority, admit: FoundUrl(f"http://{site}/{n}", site, priority=priority, admit=admit),
    st.sampled_from(SITES),
    st.integers(0, 9),
    st.integers(-1, 1),
    st.booleans(),
)
refusals = st.builds(
    Refusal, st.just("http://x/"), st.sampled_from((*SITES, "far")), st.sampled_from([Reason.ROBOTS, Reason.DEPTH])
)
told = st.sampled_from([Signals.SITEMAP, Signals.FEED, Signals.SITEMAP | Signals.FEED, Signals.NOTHING])
outcomes = st.sampled_from(["first", "unchanged", "changed", "gone", "elsewhere", "failed", "touched"])


def result(lease: Lease, at: float, outcome: str, again: float | None, found: tuple[FoundUrl, ...]) -> VisitResult:
    next_visit = None if again is None else at + again
    visit = Visit(at, Outcome.UNCHANGED, 0.7, lease.page.told | Signals.DATED)
    memory = f"{outcome} {at}".encode() if again else b""
    base = VisitResult(lease, visit, PageState.LIVE, again, next_visit, found=found, memory=memory)
    if outcome in {"first", "changed"}:
        version = new_version(f"{outcome} at {at}", searchable=again is not None)
        return replace(
            base,
            visit=replace(visit, outcome=Outcome.CHANGED, similarity=0.2),
            version=version,
            etag=str(at),
            text_digest=b"t",
        )
    if outcome in {"gone", "elsewhere"}:
        return replace(base, visit=Visit(at, Outcome.GONE), state=PageState(outcome), reason=Reason.GONE)
    if outcome == "failed":
        state = lease.page.state if lease.page.version else PageState.FAILED
        return replace(base, visit=Visit(at, Outcome.FAILED), state=state, failures=lease.page.failures + 1)
    if outcome == "touched":
        return replace(base, body_digest=str(at).encode(), etag="touched")
    return base


class StoresAgree(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.memory = MemoryStore(limits=LIMITS)
        self.stored = self.open()
        self.now = 100.0
        self.leases: list[Lease] = []
        self.known: list[PageRecord] = []

    def open(self) -> SqliteStore | PostgresqlStore:
        raise NotImplementedError

    @rule(seconds=st.sampled_from([0.0, 1.0, 7.5, 60.0, 400.0]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @rule(found=st.lists(founds, max_size=6), refused=st.lists(refusals, max_size=2))
    def add(self, found: list[FoundUrl], refused: list[Refusal]) -> None:
        assert self.stored.add(found, refused, self.now) == self.memory.add(found, refused, self.now)

    @rule(
        limit=st.integers(0, 8),
        seconds=st.sampled_from([5.0, 50.0]),
        early=st.sampled_from([None, 0.0, 1.0, 20.0, 100.0]),
    )
    def lease(self, limit: int, seconds: float, early: float | None) -> None:
        due = None if early is None else self.now - early
        leases = self.memory.lease(self.now, limit, seconds, due)
        assert self.stored.lease(self.now, limit, seconds, due) == leases
        self.leases += leases

    @precondition(lambda self: self.leases)
    @rule(
        data=st.data(),
        plan=st.lists(
            st.tuples(outcomes, st.sampled_from([None, 0.0, 5.0, 90.0]), st.lists(founds, max_size=3), st.booleans()),
            min_size=1,
            max_size=3,
        ),
    )
    def commit(self, data: st.DataObject, plan: list[tuple[str, float | None, list[FoundUrl], bool]]) -> None:
        visits = []
        for outcome, again, found, keep in plan:
            lease = data.draw(st.sampled_from(self.leases))
            visits.append(result(lease, self.now, outcome, again, tuple(found)))
            if not keep and len(self.leases) > 1:
                self.leases.remove(lease)
        assert self.stored.commit(visits) == self.memory.commit(visits)

    @precondition(lambda self: self.leases)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        leases = data.draw(st.lists(st.sampled_from(self.leases), max_size=3))
        self.memory.release(leases)
        self.stored.release(leases)

    @rule(
        urls=st.lists(founds.map(lambda found: found.url), min_size=1, max_size=8),
        early=st.sampled_from([-1.0, 0.0, 5.0, 200.0]),
        said=told,
    )
    def receive(self, urls: list[str], early: float, said: Signals) -> None:
        hints = [ChangeHint(url, self.now - early, said) for url in urls]
        outdated = self.memory.outdated(hints)
        assert self.stored.outdated(hints) == outdated
        self.known += outdated

    @precondition(lambda self: self.known or self.leases)
    @rule(
        data=st.data(),
        plan=st.lists(
            st.tuples(told, st.sampled_from([None, -50.0, 0.0, 3.0, 1000.0, float("nan")])), min_size=1, max_size=4
        ),
    )
    def bring_forward(self, data: st.DataObject, plan: list[tuple[Signals, float | None]]) -> None:
        """Of pages as they are, as they were, and as they are leased."""
        known = st.sampled_from([*self.known, *(lease.page for lease in self.leases)])
        pages = [(data.draw(known), said, None if when is None else self.now + when) for said, when in plan]
        self.memory.bring_forward(pages)
        self.stored.bring_forward(pages)

    @rule()
    def forget_leases(self) -> None:
        self.memory.forget_leases()
        self.stored.forget_leases()

    @rule(back=st.sampled_from([0.0, 100.0]), longest=st.sampled_from([0.0, 5.0, 100.0]))
    def limit_waits(self, back: float, longest: float) -> None:
        now = self.now - back
        assert self.stored.limit_waits(now, now + longest) == self.memory.limit_waits(now, now + longest)

    @rule(
        site=st.sampled_from(SITES),
        rest=st.sampled_from([0.0, 30.0, 300.0]),
        delay=st.sampled_from([None, 0.0, 2.0]),
    )
    def save(self, site: str, rest: float, delay: float | None) -> None:
        record = SiteRecord(site, rest_until=self.now + rest if rest else 0.0, delay=delay)
        self.memory.save(record)
        self.stored.save(record)

    @rule()
    def reopen(self) -> None:
        self.stored.close()
        self.stored = self.open()

    @rule(after=st.integers(0, 5), limit=st.integers(0, 5))
    def documents_agree(self, after: int, limit: int) -> None:
        assert self.stored.changes(after, limit) == self.memory.changes(after, limit)
        assert list(self.stored.scan()) == list(self.memory.scan())

    @rule(one_in=st.sampled_from([1, 2, 4]))
    def samples_agree(self, one_in: int) -> None:
        assert list(self.stored.sample(one_in)) == list(self.memory.sample(one_in))
        assert self.stored.live_pages() == self.memory.live_pages()

    @rule(found=founds, version=st.sampled_from([None, 1, 2, 3]))
    def a_page_agrees(self, found: FoundUrl, version: int | None) -> None:
        assert self.stored.page(found.url) == self.memory.page(found.url)
        assert self.stored.document(found.url, version) == self.memory.document(found.url, version)
        assert self.stored.versions(found.url) == self.memory.versions(found.url)

    @invariant()
    def standings_and_sites_agree(self) -> None:
        on_disk, in_memory = self.stored.stats(self.now), self.memory.stats(self.now)
        assert replace(on_disk, bytes=0) == replace(in_memory, bytes=0)
        assert list(self.stored.sites()) == list(self.memory.sites())


class OnDisk(StoresAgree):
    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        super().__init__()

    def open(self) -> SqliteStore:
        return SqliteStore(self.folder / "store.db", limits=LIMITS)

    def teardown(self) -> None:
        check_invariants(self.stored)
        self.stored.close()
        shutil.rmtree(self.folder)


class OnServer(StoresAgree):
    schemas: ClassVar[Schemas]

    def __init__(self) -> None:
        self.schema = self.schemas.lend()
        super().__init__()

    def open(self) -> PostgresqlStore:
        return PostgresqlStore(self.schemas.address, schema=self.schema, limits=LIMITS)

    def teardown(self) -> None:
        check_invariants(self.stored)
        self.stored.close()
        self.schemas.take_back(self.schema)


SETTINGS = settings(
    max_examples=25, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck), database=None
)


def test_the_stores_in_memory_and_on_disk_agree() -> None:
    run_state_machine_as_test(OnDisk, settings=SETTINGS)


def test_the_stores_in_memory_and_on_a_server_agree(postgresql: str) -> None:
    with closing(Schemas(postgresql)) as OnServer.schemas:
        run_state_machine_as_test(OnServer, settings=settings(SETTINGS, max_examples=10))
