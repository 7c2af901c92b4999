-- The tables of a SQLite store.
--
-- The cost of a visit is above all the number of database pages that it dirties: each is written to the log, checked,
-- synced and copied back, about 10 microseconds of CPU together, whatever its size. Therefore:
-- - A page's id begins with its site (`rules.page_number`): a site's pages are neighbours in every table, whenever
--   they were found. With ids in the order of discovery a visit at a million URLs cost about a tenth more.
-- - `pages` changes only when the content does. What was found and what a visit compares (validators, digests, sketch)
--   are in one row, so that a lease reads one place less. Contents are in `versions`.
-- - What every visit changes, including the policy's memory, is in `visited`, whose rows are narrow, and in its index,
--   the queue of a site's pages that are due again. `unvisited` is the queue of new pages. Both answer a lease without
--   reading a row.
-- - Leases have a small table of their own, so that leasing a page rewrites none of these.
--
-- A visit still dirties one leaf of `visited` and up to two of its index, which pages of one site share. That is cheap
-- where a lease takes several pages of a site in a row, and twice as dear at a million URLs where politeness allows
-- only one. Enumerations are stored as the numbers of `rows`.

CREATE TABLE sites (
    id INTEGER PRIMARY KEY,
    site TEXT NOT NULL UNIQUE,
    admitted INTEGER NOT NULL DEFAULT 0,
    pages INTEGER NOT NULL DEFAULT 0,
    failures INTEGER NOT NULL DEFAULT 0,
    rest_until REAL NOT NULL DEFAULT 0,
    delay REAL,
    turn_at REAL NOT NULL DEFAULT 0,
    taken INTEGER NOT NULL DEFAULT 0,
    due_at REAL
);
CREATE INDEX sites_by_turn ON sites (due_at, taken) WHERE due_at IS NOT NULL;
CREATE TABLE robots (site_id INTEGER PRIMARY KEY REFERENCES sites (id), records BLOB NOT NULL);
-- The near-duplicate runs of a site's new pages (`levada.pages.urls.NearDuplicateRuns`).
CREATE TABLE near_runs (site_id INTEGER PRIMARY KEY, runs BLOB NOT NULL);
CREATE TABLE refusals (
    site_id INTEGER NOT NULL,
    reason TEXT NOT NULL,
    n INTEGER NOT NULL,
    example TEXT NOT NULL,
    PRIMARY KEY (site_id, reason)
) WITHOUT ROWID;
CREATE TABLE pages (
    id INTEGER PRIMARY KEY,
    site_id INTEGER NOT NULL REFERENCES sites (id),
    url TEXT NOT NULL UNIQUE,
    kind INTEGER NOT NULL,
    how INTEGER NOT NULL,
    depth INTEGER NOT NULL,
    hops INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    found_at REAL NOT NULL,
    found_on INTEGER,
    version INTEGER NOT NULL DEFAULT 0,
    seq INTEGER,
    gone INTEGER NOT NULL DEFAULT 0,
    etag TEXT,
    last_modified TEXT,
    body_digest BLOB,
    text_digest BLOB,
    sketch BLOB,
    text_key INTEGER
);
CREATE UNIQUE INDEX pages_by_change ON pages (seq) WHERE seq IS NOT NULL;
CREATE INDEX pages_by_text ON pages (text_key) WHERE text_key IS NOT NULL;
CREATE TABLE unvisited (
    site_id INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    page_id INTEGER NOT NULL REFERENCES pages (id),
    PRIMARY KEY (site_id, priority, page_id)
) WITHOUT ROWID;
CREATE TABLE visited (
    page_id INTEGER PRIMARY KEY REFERENCES pages (id),
    site_id INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    state INTEGER NOT NULL,
    visits INTEGER NOT NULL,
    failures INTEGER NOT NULL,
    met_at REAL NOT NULL,
    interval REAL,
    next_visit REAL,
    reason TEXT,
    leads_to TEXT,
    told INTEGER NOT NULL DEFAULT 0,
    history BLOB NOT NULL,
    memory BLOB NOT NULL
);
CREATE INDEX visited_due ON visited (site_id, next_visit) WHERE next_visit IS NOT NULL;
CREATE TABLE leases (
    page_id INTEGER PRIMARY KEY,
    token INTEGER NOT NULL,
    expires_at REAL NOT NULL,
    live INTEGER NOT NULL DEFAULT 1
);
CREATE TABLE versions (
    page_id INTEGER NOT NULL REFERENCES pages (id),
    version INTEGER NOT NULL,
    fetched_at REAL NOT NULL,
    title TEXT NOT NULL,
    language TEXT NOT NULL,
    charset TEXT NOT NULL,
    status INTEGER NOT NULL,
    words INTEGER NOT NULL,
    distinct_words INTEGER NOT NULL,
    similarity REAL NOT NULL,
    searchable INTEGER NOT NULL,
    headers BLOB NOT NULL,
    content_zstd BLOB NOT NULL,
    facts BLOB, -- what a document that is no web page says about itself
    data BLOB, -- structured data
    PRIMARY KEY (page_id, version)
);
CREATE TABLE happenings (
    seq INTEGER PRIMARY KEY,
    at REAL NOT NULL,
    what INTEGER NOT NULL,
    page_id INTEGER NOT NULL, -- of a page that may have moved to another shard since
    version INTEGER NOT NULL,
    similarity REAL NOT NULL
);
CREATE TABLE counters (name TEXT PRIMARY KEY, n INTEGER NOT NULL) WITHOUT ROWID;
-- Used only by a shard of several, and empty in a store that is alone.
CREATE TABLE outbox (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    found BLOB NOT NULL,
    found_on INTEGER NOT NULL,
    at REAL NOT NULL
);
CREATE TABLE departed (
    page_id INTEGER PRIMARY KEY,
    seq INTEGER NOT NULL UNIQUE,
    url TEXT NOT NULL,
    site TEXT NOT NULL
);
CREATE TABLE arrived (page_id INTEGER PRIMARY KEY, version INTEGER NOT NULL);
-- How many page numbers a site has used, where that is not its number of pages: no number is used twice.
CREATE TABLE numbered (site_id INTEGER PRIMARY KEY, n INTEGER NOT NULL);
-- Keyed hashes of the URLs and sites that were forgotten, and their key.
CREATE TABLE forgotten (mark TEXT PRIMARY KEY, at REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE forgotten_key (id INTEGER PRIMARY KEY CHECK (id = 1), key TEXT NOT NULL);
-- References to bodies elsewhere that no version names since then, until their objects are deleted.
CREATE TABLE unused_bodies (reference BLOB PRIMARY KEY, since REAL NOT NULL) WITHOUT ROWID;
CREATE INDEX unused_bodies_by_age ON unused_bodies (since);
