"""The SQL statements of both databases, written once over a `Dialect`."""

from __future__ import annotations

from levada.store.sql.base import Dialect

DRAWN = "((((p.id & 16777215) * 40503 + (p.id >> 24) * 30011) >> 4) & (? - 1)) = 0"
"""`levada.core.hashing.drawn` of the page `p`."""

_FREE = "NOT EXISTS (SELECT 1 FROM leases l WHERE l.page_id = {} AND l.live)"
_PAGE = """p.id, p.url, s.site, coalesce(v.kind, p.kind), coalesce(v.state, 0), p.how, p.depth, p.hops,
    p.found_at, p.found_on, v.reason, coalesce(v.visits, 0), v.history, v.interval, v.next_visit,
    coalesce(v.failures, 0), {d.version}, {d.document}.etag, {d.document}.last_modified, {d.document}.body_digest,
    {d.document}.text_digest, {d.document}.sketch, coalesce(v.memory, {d.no_bytes}), coalesce(v.told, 0),
    v.leads_to"""
_DOCUMENT = """p.id, p.url, s.site, v.version, v.title, v.language, v.charset, v.status, v.fetched_at, h.met_at,
    v.words, v.similarity, v.searchable, {d.document}.gone, {d.document}.version, v.headers, v.content_zstd,
    v.facts, v.data"""
_SITE = """s.id, s.site, s.admitted, s.pages, s.failures, s.rest_until, s.delay, r.records
    FROM sites s LEFT JOIN robots r ON r.site_id = s.id"""
_VERSION_MARKS = ", ".join("?" * 15)


class Statements:
    """One statement per attribute, with its parameters in the order of their marks."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self._read_pages(dialect)
        self._read_documents(dialect)
        self._read_sites(dialect)
        self._write_visits(dialect)
        self._move(dialect)
        self._forget(dialect)
        self._hold_bodies(dialect)

    def among(self, column: str) -> str:
        return self.dialect.among.format(column)

    def _read_pages(self, d: Dialect) -> None:
        t = d.written
        self.page_columns = columns = _PAGE.format(d=d)
        joined = f"JOIN sites s ON s.id = p.site_id LEFT JOIN visited v ON v.page_id = p.id {d.joined_document}"
        listed = f"FROM {d.ids} pages p ON p.id = listed.value {joined}"
        stored = f"{d.document}.version > 0 AND NOT {d.document}.gone"
        self.page = t(f"SELECT {columns} FROM pages p {joined} WHERE {d.by_url}")
        self.pages = t(f"SELECT {columns} {listed} {d.in_order}")
        extra = f"p.site_id, p.priority, coalesce(v.met_at, 0), {d.gone}"
        self.moving_pages = t(f"SELECT {extra}, {columns} {listed} {d.in_order}")
        # In slices instead of one long statement, which would make writers, or the server's vacuum, wait.
        self.sample = t(
            f"SELECT {columns} FROM pages p {joined} WHERE p.id > ? AND {stored} AND {DRAWN} ORDER BY p.id LIMIT ?"
        )
        table, id = d.documents.split()[0], d.document_id.split(".")[1]
        self.originals = t(
            f"""SELECT listed.value, s.site, {d.document}.text_digest, p.url
            FROM {d.ids} pages p ON p.id = (SELECT min(o.{id}) FROM {table} o WHERE o.text_key = listed.value)
            JOIN sites s ON s.id = p.site_id {d.joined_document}"""
        )
        self.near_runs = t(
            f"""SELECT s.site, r.runs FROM sites s JOIN near_runs r ON r.site_id = s.id
            WHERE {d.among_names.format("s.site")}"""
        )
        self.url_of = t("SELECT url FROM pages WHERE id = ?")
        self.urls_after = t("SELECT id, url FROM pages WHERE id > ? ORDER BY id LIMIT ?")
        self.urls_like = t(f"SELECT p.url FROM pages p WHERE {d.url_range} {d.url_order} LIMIT :limit")
        self.met = t(
            f"""SELECT p.url, p.id, v.met_at, v.told {d.urls} JOIN visited v ON v.page_id = p.id {d.joined_document}
            WHERE {stored}"""
        )
        drawn = "(((p.id & 16777215) * 40503 + (p.id >> 24) * 30011) >> 4) % :one_in = 0"
        self.count_range = t(f"SELECT count(*) FROM pages p WHERE {d.url_range}")
        self.urls_range = t(f"SELECT p.url FROM pages p WHERE {d.url_range} AND {drawn} {d.url_order}")
        summaries = f"""SELECT {columns}, v.met_at, w.title, w.words, w.fetched_at FROM pages p {joined}
            LEFT JOIN versions w ON w.page_id = p.id AND w.version = {d.document}.version
            WHERE {d.url_range} AND v.page_id IS NOT NULL"""
        self.summaries = t(f"{summaries} {d.url_order} LIMIT :limit")
        # A failed visit does not change `met_at`.
        since = "(v.met_at >= :since OR v.state <> 1 OR v.failures > 0)"
        self.summaries_since = t(f"{summaries} AND {since} {d.url_order} LIMIT :limit")
        self.newest_met = "SELECT coalesce(max(met_at), 0) FROM visited"
        self.summary_version = t("SELECT visits, next_visit, met_at FROM visited WHERE page_id = ?")

    def _read_documents(self, d: Dialect) -> None:
        t = d.written
        columns = _DOCUMENT.format(d=d)
        tables = f"""FROM {d.documents} JOIN sites s ON s.id = p.site_id
            JOIN visited h ON h.page_id = {d.document_id} JOIN versions v ON v.page_id = {d.document_id}"""
        current = f"{tables} AND v.version = {d.document}.version"
        wanted = f"coalesce(?, {d.document}.version)"
        self.document = t(f"SELECT {columns} {tables} AND v.version = {wanted} WHERE {d.by_url}")
        self.scan = t(
            f"""SELECT {columns} {current} WHERE {d.document_id} > ? AND NOT {d.document}.gone
            ORDER BY {d.document_id} LIMIT ?"""
        )
        # One statement, so that both halves show one moment: a follower would miss a change between two statements.
        changed = f"""SELECT {d.document}.seq, coalesce(a.version, 0), {columns} {current}
            LEFT JOIN arrived a ON a.page_id = {d.document_id} WHERE {d.document}.seq > :after"""
        nothing = ", ".join(["NULL"] * 16)
        departed = f"SELECT seq, 0, page_id, url, site, {nothing} FROM departed WHERE seq > :after"
        self.changes = t(d.first_of_union.format(first=changed, second=departed))
        table = d.documents.split()[0]
        self.newest_seq = f"""SELECT {d.greatest}((SELECT coalesce(max(seq), 0) FROM {table} WHERE seq IS NOT NULL),
            (SELECT coalesce(max(seq), 0) FROM departed))"""
        self.versions = t(
            f"""SELECT v.version, v.fetched_at, v.title, v.words, v.similarity, coalesce(v.data, {d.no_bytes})
            FROM versions v JOIN pages p ON p.id = v.page_id WHERE {d.by_url} ORDER BY v.version DESC"""
        )
        # Changes before a page moved to another shard stay in this shard's log.
        self.change_log = t(
            """SELECT h.seq, h.at, h.what, h.page_id, coalesce(p.url, d.url), coalesce(s.site, d.site), h.version,
            h.similarity, coalesce(v.title, '') FROM happenings h
            LEFT JOIN pages p ON p.id = h.page_id LEFT JOIN sites s ON s.id = p.site_id
            LEFT JOIN versions v ON v.page_id = h.page_id AND v.version = h.version
            LEFT JOIN departed d ON d.page_id = h.page_id
            WHERE h.seq > ? AND coalesce(p.url, d.url) IS NOT NULL ORDER BY h.seq LIMIT ?"""
        )

    def _read_sites(self, d: Dialect) -> None:
        t = d.written
        self.site = t(f"SELECT {_SITE} WHERE s.site = ?")
        self.sites = t(f"SELECT {_SITE} WHERE s.id > ? ORDER BY s.id LIMIT ?")
        self.moving_sites = t(f"SELECT s.turn_at, {_SITE} WHERE {self.among('s.id')}")
        self.refused_by = t("SELECT reason, n, example FROM refusals WHERE site_id = ?")
        self.refused = t(f"SELECT site_id, reason, n, example FROM refusals WHERE {self.among('site_id')}")
        self.counters = "SELECT name, n FROM counters"
        self.stored = "SELECT n FROM counters WHERE name = 'stored'"
        self.waiting = t("SELECT due_at, taken FROM sites WHERE due_at <= ? ORDER BY due_at, taken, id LIMIT ?")
        held = f"(({d.leased} AND l.expires_at > :now) OR {d.fenced})"
        next_sites = "SELECT id FROM sites WHERE due_at IS NOT NULL ORDER BY due_at, taken, id LIMIT :sites"
        self.stats = t(
            f"""SELECT (SELECT count(*) FROM (
                SELECT 1 FROM ({next_sites}) s
                JOIN visited v ON v.site_id = s.id AND v.next_visit <= :now
                WHERE NOT EXISTS (SELECT 1 FROM leases l WHERE l.page_id = v.page_id AND {held})
                LIMIT :due) due),
            (SELECT count(*) FROM leases l WHERE {d.leased} AND l.expires_at > :now),
            (SELECT min(l.expires_at) FROM leases l WHERE {d.leased}),
            (SELECT min(due_at) FROM sites WHERE due_at IS NOT NULL), {d.workable}, {d.size}"""
        )
        free = _FREE.format("v.page_id")
        self.waiting_beyond = t(
            f"""SELECT id FROM sites s WHERE turn_at > :latest
            OR (rest_until < :forever AND (rest_until > :latest OR due_at > :latest))
            OR EXISTS (SELECT 1 FROM visited v WHERE v.site_id = s.id AND v.next_visit > :latest AND {free})"""
        )

        # Before the pages of one site are counted or walked over, its id is looked up: a constant for the index.
        wanted = "v.next_visit > :later AND v.next_visit <= :until AND v.failures >= :failures"
        of_site = "v.site_id = (SELECT s.id FROM sites s WHERE s.site = :site)"
        walk = "v.page_id > :after ORDER BY v.page_id LIMIT :limit"
        rested = "(SELECT s.rest_until FROM sites s WHERE s.id = v.site_id) <= :now"
        self.planned = t(f"SELECT v.page_id FROM visited v WHERE {wanted} AND {walk}")
        self.planned_of_site = t(f"SELECT v.page_id FROM visited v WHERE {of_site} AND {wanted} AND {walk}")
        self.count_planned = t(f"SELECT count(*) FROM visited v WHERE {wanted} AND {rested}")
        self.count_planned_of_site = t(f"SELECT count(*) FROM visited v WHERE {of_site} AND {wanted} AND {rested}")

    def _write_visits(self, d: Dialect) -> None:
        t, of_sites = d.written, self.among("site_id")
        self.first_visit = t(
            """INSERT INTO visited (kind, state, reason, leads_to, visits, history, met_at, interval, next_visit,
            failures, memory, page_id, site_id) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""
        )
        self.visit_again = t(
            """UPDATE visited SET told = told & ?, kind = ?, state = ?, reason = ?, leads_to = ?, visits = ?,
            history = ?, met_at = coalesce(?, met_at), interval = ?, next_visit = ?, failures = ?,
            memory = coalesce(?, memory) WHERE page_id = ?"""
        )
        self.no_longer_new = t(d.no_longer_new)
        self.insert_page = t(d.insert_page)
        self.keep_validators = t(d.keep_validators)
        self.keep_document = t(d.keep_document)
        self.keep_near_runs = t(
            """INSERT INTO near_runs (site_id, runs) VALUES (?, ?)
            ON CONFLICT (site_id) DO UPDATE SET runs = excluded.runs"""
        )
        # Of the backfill that brings the key to older stores.
        self.keyless = t(
            f"""SELECT p.id, s.site, {d.document}.text_digest, {d.version} > 0 AND NOT {d.gone}
            FROM pages p JOIN sites s ON s.id = p.site_id {d.joined_document}
            WHERE p.id > ? ORDER BY p.id LIMIT ?"""
        )
        table, id = d.documents.split()[0], d.document_id.split(".")[1]
        self.set_text_key = t(f"UPDATE {table} SET text_key = ? WHERE {id} = ?")
        self.insert_version = t(f"INSERT INTO versions VALUES ({_VERSION_MARKS})")
        self.amend_version = t(
            """UPDATE versions SET title = ?, language = ?, charset = ?, status = ?, words = ?, distinct_words = ?,
            searchable = ?, headers = ?, content_zstd = ?, facts = ?, data = ? WHERE page_id = ? AND version = ?"""
        )
        self.data_of_version = t("SELECT data, fetched_at FROM versions WHERE page_id = ? AND version = ?")
        self.log_change = t("INSERT INTO happenings VALUES (?, ?, ?, ?, ?, ?)")
        self.tidy_log = t("DELETE FROM happenings WHERE seq <= ?")
        self.gone = t(
            f"SELECT p.id FROM {d.ids} pages p ON p.id = listed.value {d.joined_document} WHERE {d.document}.gone"
        )
        self.held = t(
            f"SELECT 1 FROM leases l WHERE l.page_id = ? AND (({d.leased} AND l.expires_at > ?) OR {d.fenced})"
        )
        self.tokens = t(f"SELECT l.page_id, l.token FROM {d.ids} leases l ON l.page_id = listed.value")
        self.end_leases = t(f"DELETE FROM leases WHERE {self.among('page_id')}")
        self.forward = t("INSERT INTO outbox (found, found_on, at) VALUES (?, ?, ?)")
        self.count_refusal = t(
            """INSERT INTO refusals (site_id, reason, n, example) VALUES (?, ?, ?, ?)
            ON CONFLICT (site_id, reason) DO UPDATE SET n = refusals.n + excluded.n"""
        )
        self.due_of = t(
            f"""SELECT p.id, coalesce(v.next_visit, p.found_at) FROM {d.ids} pages p ON p.id = listed.value
            LEFT JOIN visited v ON v.page_id = p.id"""
        )
        self.due_now = t(
            f"""UPDATE visited SET next_visit = ? WHERE {of_sites} AND next_visit > ?
            AND {_FREE.format("visited.page_id")}"""
        )
        self.found_now = t(
            f"""UPDATE pages SET found_at = ? WHERE id IN (SELECT page_id FROM unvisited WHERE {of_sites})
            AND found_at > ? AND {_FREE.format("pages.id")}"""
        )
        self.rest_until = t("UPDATE sites SET rest_until = ? WHERE id = ?")
        self.save_site = t("UPDATE sites SET failures = ?, rest_until = ?, delay = ? WHERE id = ?")
        self.save_robots = t(
            """INSERT INTO robots (site_id, records) VALUES (?, ?)
            ON CONFLICT (site_id) DO UPDATE SET records = excluded.records"""
        )
        self.free_plans = t(
            f"""SELECT v.page_id, v.site_id, v.visits, v.told, v.next_visit
            FROM {d.ids} visited v ON v.page_id = listed.value WHERE {_FREE.format("v.page_id")}"""
        )
        self.expect = t("UPDATE visited SET told = ?, next_visit = ? WHERE page_id = ?")

    def _move(self, d: Dialect) -> None:
        t, of_pages = d.written, self.among("page_id")
        self.undelivered = t("SELECT id, found, found_on, at FROM outbox WHERE id > ? ORDER BY id LIMIT ?")
        self.delivered = t(f"DELETE FROM outbox WHERE {self.among('id')}")
        self.there_by_url = t(f"SELECT p.url {d.urls}")
        self.there_by_id = t(f"SELECT id FROM pages WHERE {self.among('id')}")
        self.found = t(f"SELECT p.id, p.site_id {d.urls}")
        self.movable = t(
            f"""SELECT p.id FROM {d.ids} pages p ON p.id = listed.value
            WHERE NOT EXISTS (SELECT 1 FROM leases l WHERE l.page_id = p.id AND {d.leased} AND l.expires_at > ?)
            {d.in_order}"""
        )
        self.moving_versions = t(
            f"""SELECT page_id, version, fetched_at, title, language, charset, status, headers, content_zstd,
            words, distinct_words, similarity, searchable, facts, data FROM versions WHERE {of_pages}
            ORDER BY page_id, version"""
        )
        self.insert_visited = t(
            """INSERT INTO visited (page_id, site_id, kind, state, visits, failures, met_at, interval, next_visit,
            reason, leads_to, told, history, memory) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""
        )
        self.insert_unvisited = t("INSERT INTO unvisited (site_id, priority, page_id) VALUES (?, ?, ?)")
        self.forget_departure = t(f"DELETE FROM departed WHERE {of_pages}")
        self.arrived = t(
            """INSERT INTO arrived (page_id, version) VALUES (?, ?)
            ON CONFLICT (page_id) DO UPDATE SET version = excluded.version"""
        )
        self.keep_site = t(
            """UPDATE sites SET rest_until = ?, failures = CASE WHEN failures < ? THEN ? ELSE failures END,
            delay = coalesce(delay, ?) WHERE id = ?"""
        )
        fenced = f"FROM {d.ids} leases l ON l.page_id = listed.value"
        self.fenced = t(
            f"""SELECT l.page_id, p.url FROM leases l JOIN pages p ON p.id = l.page_id
            WHERE {d.fenced} ORDER BY l.page_id"""
        )
        self.fenced_sites = t(f"SELECT DISTINCT p.site_id {fenced} JOIN pages p ON p.id = l.page_id WHERE {d.fenced}")
        leaving = f"""SELECT p.id, p.site_id, p.url, s.site, {d.version}, {d.gone}, coalesce(v.state, 0),
            v.page_id IS NULL, (SELECT count(*) FROM versions o WHERE o.page_id = p.id)"""
        self.leaving = t(
            f"""{leaving} {fenced} JOIN pages p ON p.id = l.page_id JOIN sites s ON s.id = p.site_id
            LEFT JOIN visited v ON v.page_id = p.id {d.joined_document} WHERE {d.fenced} {d.in_order}"""
        )
        self.erasing = t(
            f"""{leaving} FROM {d.ids} pages p ON p.id = listed.value JOIN sites s ON s.id = p.site_id
            LEFT JOIN visited v ON v.page_id = p.id {d.joined_document} {d.in_order}"""
        )
        self.forget = tuple(
            t(each)
            for each in (
                f"DELETE FROM versions WHERE {of_pages}",
                f"DELETE FROM visited WHERE {of_pages}",
                d.no_longer_new,
                f"DELETE FROM leases WHERE {of_pages}",
                f"DELETE FROM arrived WHERE {of_pages}",
                *d.forget_document,
                f"DELETE FROM pages WHERE {self.among('id')}",
            )
        )
        self.depart = t(
            """INSERT INTO departed (page_id, seq, url, site) VALUES (?, ?, ?, ?)
            ON CONFLICT (page_id) DO UPDATE SET seq = excluded.seq, url = excluded.url, site = excluded.site"""
        )
        self.fenced_due = t(
            f"""SELECT coalesce(v.next_visit, p.found_at), p.site_id {fenced} JOIN pages p ON p.id = l.page_id
            LEFT JOIN visited v ON v.page_id = p.id
            WHERE {d.fenced} AND (v.page_id IS NULL OR v.next_visit IS NOT NULL)"""
        )
        self.open = t(f"DELETE FROM leases AS l WHERE {self.among('l.page_id')} AND {d.fenced}")
        self.refused_of = t(
            f"""SELECT reason, sum(n), min(example) FROM refusals WHERE {self.among("site_id")}
            GROUP BY reason ORDER BY reason"""
        )
        self.forget_sites = tuple(
            t(f"DELETE FROM {table} WHERE {self.among('site_id')}") for table in ("refusals", "robots", "near_runs")
        )

    def _forget(self, d: Dialect) -> None:
        t = d.written
        self.tombstone_key = "SELECT key FROM forgotten_key"
        self.make_tombstone_key = t("INSERT INTO forgotten_key (id, key) VALUES (1, ?) ON CONFLICT DO NOTHING")
        self.tombstones = "SELECT mark, at FROM forgotten ORDER BY mark"
        self.buried = t(f"SELECT mark FROM forgotten WHERE {d.among_names.format('mark')}")
        self.bury = t("INSERT INTO forgotten (mark, at) VALUES (?, ?) ON CONFLICT DO NOTHING")
        self.exhume = t(f"DELETE FROM forgotten WHERE {d.among_names.format('mark')}")
        self.forget_events = t(f"DELETE FROM happenings WHERE {self.among('page_id')}")
        self.forget_near_runs = t(f"DELETE FROM near_runs WHERE {self.among('site_id')}")
        self.forget_departed = t(f"UPDATE departed SET url = '', site = '' WHERE {self.among('page_id')}")
        self.departed_urls = t(
            "SELECT page_id, url FROM departed WHERE url <> '' AND page_id > ? ORDER BY page_id LIMIT ?"
        )
        self.next_pages = t("SELECT id FROM pages WHERE id > ? ORDER BY id LIMIT ?")
        # The number of a page that was found here and is no longer here, nor on another shard.
        self.forget_found_on = t(
            """UPDATE pages SET found_on = NULL WHERE id > ? AND id <= ? AND found_on > ? AND found_on < ?
            AND NOT EXISTS (SELECT 1 FROM pages q WHERE q.id = pages.found_on)
            AND NOT EXISTS (SELECT 1 FROM departed w WHERE w.page_id = pages.found_on AND w.url <> '')"""
        )
        self.leads = t(
            "SELECT page_id, leads_to FROM visited WHERE page_id > ? AND page_id <= ? AND leads_to IS NOT NULL"
        )
        self.forget_leads = t(f"UPDATE visited SET leads_to = NULL WHERE {self.among('page_id')}")
        self.examples = "SELECT site_id, reason, example FROM refusals WHERE example <> ''"
        self.forget_example = t("UPDATE refusals SET example = '' WHERE site_id = ? AND reason = ?")
        self.outbox_links = t("SELECT id, found, found_on, at FROM outbox WHERE id > ? ORDER BY id LIMIT ?")
        self.site_names = t("SELECT id, site FROM sites WHERE id > ? ORDER BY id LIMIT ?")
        self.kept_versions = t(
            f"""SELECT p.id, p.url, {d.gone}, {d.version}, o.version, o.fetched_at FROM versions o
            JOIN pages p ON p.id = o.page_id {d.joined_document}
            WHERE o.page_id > ? AND o.page_id <= ? ORDER BY o.page_id, o.version"""
        )
        self.versions_of = t(
            f"SELECT page_id, version, fetched_at FROM versions WHERE {self.among('page_id')} ORDER BY page_id, version"
        )
        self.next_with_versions = t("SELECT DISTINCT page_id FROM versions WHERE page_id > ? ORDER BY page_id LIMIT ?")
        self.drop_version = t("DELETE FROM versions WHERE page_id = ? AND version = ?")

    def _hold_bodies(self, d: Dialect) -> None:
        t, is_reference = d.written, "substr(content_zstd, 1, 4) = ?"
        unused = f"""INSERT INTO unused_bodies (reference, since)
            SELECT content_zstd, CAST(? AS double precision) FROM versions WHERE {is_reference}"""
        once = "ON CONFLICT (reference) DO NOTHING"
        self.unused_of_pages = t(f"{unused} AND {self.among('page_id')} {once}")
        self.unused_of_version = t(f"{unused} AND page_id = ? AND version = ? {once}")
        self.unused_up_to = t(f"{unused} AND page_id = ? AND version <= ? {once}")
        self.unused = t("INSERT INTO unused_bodies (reference, since) VALUES (?, ?) ON CONFLICT DO NOTHING")
        self.unused_bodies = t("SELECT reference FROM unused_bodies WHERE since <= ? ORDER BY since LIMIT ?")
        self.body_deleted = t("DELETE FROM unused_bodies WHERE reference = ?")
        self.references_of = t(
            f"""SELECT content_zstd FROM versions WHERE {is_reference} AND {self.among("page_id")}
            ORDER BY page_id, version"""
        )
        self.contents_of = t(
            f"""SELECT page_id, version, content_zstd FROM versions WHERE {self.among("page_id")}
            ORDER BY page_id, version"""
        )
        self.replace_content = t("UPDATE versions SET content_zstd = ? WHERE page_id = ? AND version = ?")
