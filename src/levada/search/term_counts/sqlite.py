"""Term counts in a SQLite file.

It holds nothing that the documents do not: if anything is wrong with it, it can be deleted and is counted again. So
a commit need not wait for the disk (`synchronous=NORMAL`): a power cut takes back whole rounds, with their
position.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path

from levada.core.errors import StoreDamaged, StoreError
from levada.core.hashing import term_number
from levada.core.protocols import Faults
from levada.core.search_records import CountedRound, PageTerms, TermGrowth, TrendQuery
from levada.search.terms import site_names
from levada.store.faults import NoFaults
from levada.store.rules import plain_text
from levada.store.sqlite.small_file import SmallFile

_DAY = 86_400
_AT_ONCE = 500
_ADD_FREQUENCY = """INSERT INTO frequencies VALUES (?, ?, ?)
    ON CONFLICT DO UPDATE SET documents = documents + excluded.documents"""
_DROP_FREQUENCY = "DELETE FROM frequencies WHERE term = ? AND language = ? AND documents <= 0"
_FREQUENCY = """SELECT coalesce(sum(documents), 0) FROM frequencies
    WHERE term = ? AND language = coalesce(?, language)"""
_ADD_NEWS = """INSERT INTO news VALUES (?, ?, ?, ?, ?)
    ON CONFLICT DO UPDATE SET changes = changes + excluded.changes"""
_GROWTH = """SELECT w.word, g.language, g.now, g.past, g.sites FROM (
        SELECT language, term,
            sum(iif(window >= :since, changes, 0)) AS now,
            sum(iif(window < :since, changes, 0)) AS past,
            count(DISTINCT iif(window >= :since, site_id, NULL)) AS sites
        FROM news WHERE window >= :past AND window < :until {conditions}
        GROUP BY language, term HAVING now >= :least OR term = 0
    ) g JOIN words w ON w.term = g.term ORDER BY g.language, w.word"""
_DROP_RARE = """DELETE FROM news WHERE window < :before AND term != 0 AND (window / :day, language, term) IN (
        SELECT window / :day, language, term FROM news
        WHERE window < :before AND term != 0 GROUP BY 1, 2, 3 HAVING sum(changes) < :rare
    )"""
_DROP_WORDS = """DELETE FROM words WHERE term != 0
    AND term NOT IN (SELECT term FROM frequencies) AND term NOT IN (SELECT term FROM news)"""


class SqliteTrends(SmallFile):
    """Each round is one transaction: all of it, or an error and nothing. Several processes may count; one is
    first. A `StoreDamaged` when it is opened says that it should be deleted and counted again."""

    application_id = 0x4C765472  # "LvTr"
    schema = (
        "CREATE TABLE numbers (name TEXT PRIMARY KEY, n INTEGER NOT NULL) WITHOUT ROWID",
        "CREATE TABLE words (term INTEGER PRIMARY KEY, word TEXT NOT NULL)",
        "CREATE TABLE sites (id INTEGER PRIMARY KEY, site TEXT NOT NULL UNIQUE)",
        """CREATE TABLE frequencies (
            term INTEGER NOT NULL,
            language TEXT NOT NULL,
            documents INTEGER NOT NULL,
            PRIMARY KEY (term, language)
        ) WITHOUT ROWID""",
        # By window first: queries and deletions are ranges of it.
        """CREATE TABLE news (
            window INTEGER NOT NULL,
            language TEXT NOT NULL,
            term INTEGER NOT NULL,
            site_id INTEGER NOT NULL,
            changes INTEGER NOT NULL,
            PRIMARY KEY (window, language, term, site_id)
        ) WITHOUT ROWID""",
        """CREATE TABLE pages (
            page_id INTEGER PRIMARY KEY,
            version INTEGER NOT NULL,
            language TEXT NOT NULL,
            terms BLOB
        )""",
        "CREATE TABLE reports (id INTEGER PRIMARY KEY, report BLOB NOT NULL)",
        "INSERT INTO words VALUES (0, '')",
    )
    durable = False
    busy_seconds = 20.0

    def __init__(self, path: Path, *, faults: Faults | None = None, read_only: bool = False) -> None:
        self._faults = faults or NoFaults()
        super().__init__(path, read_only=read_only)

    def position(self) -> int:
        return self._number("position")

    def counted(self, page_ids: Sequence[int]) -> dict[int, PageTerms]:
        found: dict[int, PageTerms] = {}
        for start in range(0, len(page_ids), _AT_ONCE):
            some = page_ids[start : start + _AT_ONCE]
            marks = ",".join("?" * len(some))
            for page_id, *facts in self._rows(f"SELECT * FROM pages WHERE page_id IN ({marks})", tuple(some)):  # noqa: S608
                found[page_id] = PageTerms(*facts)
        return found

    def commit(self, round: CountedRound) -> bool:
        with self._transaction() as run:
            if self._number("position") != round.after:
                return False
            self._write(run, round)
            return True

    def frequency(self, term: str, language: str | None = None) -> int:
        ((documents,),) = self._rows(_FREQUENCY, (term_number(term), language))
        return int(documents)

    def growth(self, query: TrendQuery) -> list[TermGrowth]:
        conditions = "" if query.language is None else "AND language = :language"
        if query.site is not None:
            ids = [id for id, site in self._rows("SELECT id, site FROM sites") if query.site in site_names(site)]
            conditions += f" AND site_id IN ({','.join(map(str, ids))})"
        parameters = {
            "past": query.past,
            "since": query.since,
            "until": query.until,
            "least": query.least,
            "language": query.language,
        }
        return [TermGrowth(*row) for row in self._rows(_GROWTH.format(conditions=conditions), parameters)]

    def tidy(self, oldest: float, rare_before: float, rare: int) -> None:
        """Rare terms are searched for once a day: that reads all additions."""
        before = int(rare_before // _DAY) * _DAY
        with self._transaction() as run:
            is_another_day = before > self._number("tidied")
            if is_another_day:  # first: what is deleted below belongs to its day
                run.execute(_DROP_RARE, {"before": before, "rare": rare, "day": _DAY})
                run.execute("INSERT OR REPLACE INTO numbers VALUES ('tidied', ?)", (before,))
            run.execute("DELETE FROM news WHERE window < ?", (oldest,))
            if is_another_day:
                run.execute(_DROP_WORDS)

    def forget(self, is_forgotten: Callable[[Sequence[str]], set[str]]) -> None:
        """Delete what was told of forgotten sites, and the words that are on no page any more.

        Which page of a site added a word is not known, so a word that went with a forgotten page goes as a whole.
        """
        known = self._rows("SELECT id, site FROM sites")
        sites = is_forgotten([site for _, site in known])
        with self._transaction() as run:
            run.execute("PRAGMA secure_delete = ON")
            gone = [(id,) for id, site in known if site in sites]
            run.executemany("DELETE FROM news WHERE site_id = ?", gone)
            run.executemany("DELETE FROM sites WHERE id = ?", gone)
            self._reach("forgotten")
            run.execute("DELETE FROM news WHERE term != 0 AND term NOT IN (SELECT term FROM frequencies)")
            run.execute(_DROP_WORDS)
            run.execute("DELETE FROM pages WHERE terms IS NULL")
            run.execute("DELETE FROM reports")

    def keep_report(self, report: bytes) -> None:
        """Store the report of the counting run for other processes; it replaces the one before."""
        self._rows("INSERT OR REPLACE INTO reports VALUES (1, ?)", (report,))

    def report(self) -> bytes:
        """The report of the run that counted last; empty if there was none."""
        rows = self._rows("SELECT report FROM reports")
        return bytes(rows[0][0]) if rows else b""

    def _write(self, run: sqlite3.Connection, round: CountedRound) -> None:
        words = ((number, plain_text(word)) for number, word in sorted(round.words.items()))
        run.executemany("INSERT OR IGNORE INTO words VALUES (?, ?)", words)
        self._reach("words")
        frequencies = sorted((term, language, n) for (language, term), n in round.frequencies.items())
        run.executemany(_ADD_FREQUENCY, frequencies)
        run.executemany(_DROP_FREQUENCY, [(term, language) for term, language, n in frequencies if n < 0])
        self._reach("frequencies")
        sites = self._site_ids(run, {site for _, site, _, _ in round.news})
        news = ((window, language, term, sites[site], n) for (window, site, language, term), n in round.news.items())
        run.executemany(_ADD_NEWS, sorted(news))
        self._reach("news")
        pages = ((id, page.version, page.language, page.terms) for id, page in sorted(round.pages.items()))
        run.executemany("INSERT OR REPLACE INTO pages VALUES (?, ?, ?, ?)", pages)
        self._reach("pages")
        run.execute("INSERT OR REPLACE INTO numbers VALUES ('position', ?)", (round.position,))
        self._reach("position")

    def _site_ids(self, run: sqlite3.Connection, sites: set[str]) -> dict[str, int]:
        run.executemany("INSERT OR IGNORE INTO sites (site) VALUES (?)", ((site,) for site in sorted(sites)))
        found = (run.execute("SELECT site, id FROM sites WHERE site = ?", (site,)).fetchone() for site in sites)
        return dict(found)

    def _number(self, name: str) -> int:
        rows = self._rows("SELECT n FROM numbers WHERE name = ?", (name,))
        return int(rows[0][0]) if rows else 0

    def _reach(self, step: str) -> None:
        self._faults.reach(f"count.{step}")

    def _check(self, application_id: int, version: int) -> None:
        if application_id != self.application_id:
            raise StoreError(f"{self.path} is a database, but not one of term counts: move it away")
        if version != self.version:
            raise StoreDamaged(f"{self.path} is of another format ({version}, ours is {self.version}): delete it")
