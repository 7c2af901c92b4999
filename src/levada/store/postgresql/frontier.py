"""The frontier on PostgreSQL: adding URLs while other processes do the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from levada.core.reasons import Reason
from levada.core.records import FoundUrl, Refusal, VisitResult
from levada.store.base import StoreLimits
from levada.store.postgresql.database import PostgresqlWrite
from levada.store.postgresql.dialect import POSTGRESQL, url_rest, urls_listed
from levada.store.postgresql.site_locks import KNOWN_SITES, LockedSites
from levada.store.rows import HOW_CODE, KIND_CODE
from levada.store.rules import holdable, is_full, page_number, refused_for
from levada.store.sql.base import KnownUrls
from levada.store.sql.writing import ELSEWHERE_ID, Intake

_NUMBERED = "SELECT site, id FROM sites WHERE site = ANY(%s::text[])"
_THERE_AND_KEY = f"""SELECT p.url, NULL::text {POSTGRESQL.dialect.written(POSTGRESQL.dialect.urls)}
    UNION ALL SELECT NULL, key FROM forgotten_key"""
_INSERT_PAGES = """INSERT INTO pages
    (id, site_id, url, kind, how, depth, hops, priority, found_at, found_on, url_rest)
    SELECT * FROM unnest(%s::bigint[], %s::bigint[], %s::text[], %s::bigint[], %s::bigint[], %s::bigint[],
    %s::bigint[], %s::bigint[], %s::float8[], %s::bigint[], %s::bytea[])"""
_INSERT_UNVISITED = """INSERT INTO unvisited (page_id, site_id, priority)
    SELECT * FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[])"""


class PostgresqlIntake(Intake[PostgresqlWrite]):
    """Looks everything up at once, under the locks of its sites, and writes it at once."""

    _sites: LockedSites

    def __init__(self, write: PostgresqlWrite, limits: StoreLimits, known: KnownUrls) -> None:
        super().__init__(write, POSTGRESQL, limits, known)
        self._sites = LockedSites(write)
        self._passed_over: set[str] = set()
        self._there: set[str] = set()
        self._not_in_hand: dict[str, int] = {}

    def prepare(self, found: Sequence[FoundUrl], refused: Iterable[Refusal]) -> None:
        """Lock the sites of what was found; read what is stored of them."""
        self._prepare(found, refused, (), lambda: found, lambda: None)

    def prepare_visits(self, visits: Sequence[VisitResult], ask: Callable[[], None]) -> None:
        """Leave out what visits with a lost lease found: it creates no site. The write fence itself comes later."""
        found = [each for result in visits for each in result.found]
        tokens = self._write.ask(POSTGRESQL.tokens, ([result.lease.page.id for result in visits],))

        def valid() -> list[FoundUrl]:
            there = {token for _, token in tokens()}
            return [each for result in visits if result.lease.token in there for each in result.found]

        refused = [each for result in visits for each in result.refused]
        self._prepare(found, refused, [result.lease.page.site for result in visits], valid, ask)

    def _prepare(
        self,
        found: Sequence[FoundUrl],
        refused: Iterable[Refusal],
        sites: Iterable[str],
        valid: Callable[[], Sequence[FoundUrl]],
        ask: Callable[[], None],
    ) -> None:
        """Two round trips: what can be known without a lock (`valid` reads some of it), then the locks with everything
        that is read under them (`ask` asks for more of it). Where something was ever forgotten, one more in between;
        where nothing new was found, only the second."""
        self._passed_over = {each.url for each in found if each.url in self._known}
        self.tombstones.ask_key()
        fresh, missing = self._fresh(found), []
        if fresh:
            known = self._write.ask(KNOWN_SITES, (list({each.site for each in fresh}),))
            fresh = self._fresh(valid())
            there = {site for (site,) in known()}
            self.tombstones.look_up((each.url, each.site) for each in fresh)
            fresh = [each for each in fresh if not self.tombstones.cover(each.url, each.site)]
            missing = [name for name in dict.fromkeys(each.site for each in fresh) if name not in there]
        names = dict.fromkeys(each.site for each in fresh)
        added = self._sites.ask_new(missing)
        locked = self._sites.ask_named({*names, *sites})
        urls = {each.url for each in fresh}
        asked = self._write.ask(_THERE_AND_KEY, urls_listed(list(urls))) if urls else list
        named = {each.site for each in refused} | {each.site for each in found if not holdable(each)}
        numbered = self._write.ask(_NUMBERED, (sorted(named),)) if named else list
        ask()
        added()
        locked()
        # Only if another transaction deleted a site, or added it, between its lookup and its lock.
        late = [name for name in names if name not in self._sites.by_name]
        self._sites.take_named(late)
        rows = asked()
        if late:
            rows = self._write.rows(_THERE_AND_KEY, urls_listed(list(urls)))
        self._there = {url for url, _ in rows if url is not None}
        if urls:
            # Under the locks, so that nothing of theirs is forgotten meanwhile.
            self.tombstones.look_up_again(next((key for _, key in rows if key is not None), ""), fresh)
            self._drop_forgotten(fresh)
        self._not_in_hand = {site: id for site, id in numbered() if site not in self._sites.by_name}

    def _fresh(self, found: Sequence[FoundUrl]) -> list[FoundUrl]:
        return [each for each in found if self._is_fresh(each) and holdable(each)]

    def _drop_forgotten(self, fresh: Sequence[FoundUrl]) -> None:
        """Drop the sites that were made here for URLs that are forgotten."""
        used = {each.site for each in fresh if not self.tombstones.cover(each.url, each.site)}
        for name in {each.site for each in fresh} - used:
            site = self._sites.by_name[name]
            if site.is_new and not site.pages:
                self._sites.drop(site)

    def hold(self, found: FoundUrl, found_on: int | None, now: float) -> bool:
        if not self._is_fresh(found):
            return False
        if not self.may_hold(found):
            return False
        site = self._sites.by_name[found.site]
        site.is_new = False
        if found.admit:
            site.admit()
        if found.url in self._there:
            self.held.append(found.url)
            return False
        if is_full(site.pages, self._limits.most_pages(found.site)):
            self.refuse(refused_for(found, Reason.SITE_FULL))
            return False
        self.held.append(found.url)
        self._there.add(found.url)
        site.add_page(now)
        id = page_number(site.id, site.numbered)
        what = (KIND_CODE[found.kind], HOW_CODE[found.how], found.depth, found.hops, found.priority)
        self._pages.append((id, site.id, found.url, *what, float(now), found_on, url_rest(found.url)))
        return True

    def refuse(self, refusal: Refusal) -> None:
        site = self._sites.by_name.get(refusal.site)
        named_before = site is not None and not site.is_new
        id = site.id if site and named_before else self._not_in_hand.get(refusal.site, ELSEWHERE_ID)
        self._count_refusal(id, refusal)

    def site_id(self, name: str) -> int:
        return self._sites.by_name[name].id

    def due_again(self, site: str, at: float) -> None:
        self._sites.by_name[site].pull(at)

    def _write_pages(self) -> None:
        # By column: there may be a thousand, and as many statements would cost more than the rows.
        columns = [list(column) for column in zip(*self._pages, strict=True)]
        self._write.execute(_INSERT_PAGES, columns)
        self._write.execute(_INSERT_UNVISITED, (columns[0], columns[1], columns[7]))

    def _is_fresh(self, found: FoundUrl) -> bool:
        return found.admit or found.url not in self._passed_over
