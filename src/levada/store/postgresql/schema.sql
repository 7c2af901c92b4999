-- The tables of a PostgreSQL store.
--
-- The tables are those of the SQLite store, split where this server needs it: an update writes a whole new row, and a
-- new entry in every index unless no indexed column changed and the new row fits beside the old one. Therefore:
-- - `pages` is never updated: what was found stays, and so does the index of URLs. What a stored document changes is
--   in `documents`, what every visit changes in `visited`.
-- - URLs are unique by their first 400 characters and, only if they are longer, a digest of the whole: an index entry
--   must fit into a third of a page. Their order is that of code points, whatever the server's locale.
-- - Contents come compressed, and are not compressed again.
-- - `sites.numbered` is how many page numbers a site has used: more than it has pages where some moved to another
--   shard. A fenced lease is one of a page that moves; it never expires. `outbox`, `departed` and `arrived` are empty
--   in a store that is not one of several shards.
--
-- There are no foreign keys: each row is written by a transaction that holds its site, and `check` verifies the
-- relations. Enumerations are stored as the numbers of `rows`.

CREATE TABLE levada_store (
    application text NOT NULL DEFAULT '{application}',
    format bigint NOT NULL DEFAULT {format}
);
CREATE TABLE sites (
    id bigint PRIMARY KEY,
    site text COLLATE "C" NOT NULL,
    admitted boolean NOT NULL DEFAULT false,
    pages bigint NOT NULL DEFAULT 0,
    failures bigint NOT NULL DEFAULT 0,
    rest_until double precision NOT NULL DEFAULT 0,
    delay double precision,
    turn_at double precision NOT NULL DEFAULT 0,
    taken bigint NOT NULL DEFAULT 0,
    due_at double precision,
    numbered bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 70);
CREATE UNIQUE INDEX sites_by_name ON sites (site);
CREATE INDEX sites_by_turn ON sites (due_at, taken, id) WHERE due_at IS NOT NULL;
CREATE TABLE robots (site_id bigint PRIMARY KEY, records bytea NOT NULL);
CREATE TABLE near_runs (site_id bigint PRIMARY KEY, runs bytea NOT NULL);
CREATE TABLE refusals (
    site_id bigint NOT NULL,
    reason text COLLATE "C" NOT NULL,
    n bigint NOT NULL,
    example text NOT NULL,
    PRIMARY KEY (site_id, reason)
) WITH (fillfactor = 70);

CREATE TABLE pages (
    id bigint PRIMARY KEY,
    site_id bigint NOT NULL,
    url text COLLATE "C" NOT NULL,
    url_rest bytea NOT NULL,
    kind bigint NOT NULL,
    how bigint NOT NULL,
    depth bigint NOT NULL,
    hops bigint NOT NULL,
    priority bigint NOT NULL,
    found_at double precision NOT NULL,
    found_on bigint
);
CREATE UNIQUE INDEX pages_by_url ON pages (left(url, {url_indexed}), url_rest);
CREATE TABLE documents (
    page_id bigint PRIMARY KEY,
    seq bigint,
    version bigint NOT NULL DEFAULT 0,
    gone boolean NOT NULL DEFAULT false,
    etag text,
    last_modified text,
    body_digest bytea,
    text_digest bytea,
    sketch bytea,
    text_key bigint
);
CREATE UNIQUE INDEX documents_by_change ON documents (seq) WHERE seq IS NOT NULL;
CREATE INDEX documents_by_text ON documents (text_key, page_id) WHERE text_key IS NOT NULL;
CREATE TABLE unvisited (
    site_id bigint NOT NULL,
    priority bigint NOT NULL,
    page_id bigint NOT NULL,
    PRIMARY KEY (site_id, priority, page_id)
);
CREATE TABLE visited (
    page_id bigint PRIMARY KEY,
    site_id bigint NOT NULL,
    kind bigint NOT NULL,
    state bigint NOT NULL,
    visits bigint NOT NULL,
    failures bigint NOT NULL,
    met_at double precision NOT NULL,
    interval double precision,
    next_visit double precision,
    reason text,
    leads_to text,
    told bigint NOT NULL DEFAULT 0,
    history bytea NOT NULL,
    memory bytea NOT NULL
);
CREATE INDEX visited_due ON visited (site_id, next_visit, page_id) WHERE next_visit IS NOT NULL;
CREATE TABLE leases (
    page_id bigint PRIMARY KEY,
    site_id bigint NOT NULL,
    token bigint NOT NULL,
    expires_at double precision NOT NULL,
    live boolean NOT NULL DEFAULT true,
    fenced boolean NOT NULL DEFAULT false
);
CREATE INDEX leases_by_end ON leases (expires_at) WHERE live AND NOT fenced;
CREATE INDEX leases_fenced ON leases (page_id) WHERE fenced;
CREATE TABLE versions (
    page_id bigint NOT NULL,
    version bigint NOT NULL,
    fetched_at double precision NOT NULL,
    title text NOT NULL,
    language text NOT NULL,
    charset text NOT NULL,
    status bigint NOT NULL,
    words bigint NOT NULL,
    distinct_words bigint NOT NULL,
    similarity double precision NOT NULL,
    searchable boolean NOT NULL,
    headers bytea NOT NULL,
    content_zstd bytea NOT NULL,
    facts bytea, -- what a document that is no web page says about itself
    data bytea, -- structured data
    PRIMARY KEY (page_id, version)
);
ALTER TABLE versions ALTER content_zstd SET STORAGE EXTERNAL;
CREATE TABLE happenings (
    seq bigint PRIMARY KEY,
    at double precision NOT NULL,
    what bigint NOT NULL,
    page_id bigint NOT NULL,
    version bigint NOT NULL,
    similarity double precision NOT NULL
);
CREATE TABLE counters (name text COLLATE "C" PRIMARY KEY, n bigint NOT NULL) WITH (fillfactor = 20);

CREATE TABLE outbox (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    found bytea NOT NULL,
    found_on bigint NOT NULL,
    at double precision NOT NULL
);
CREATE TABLE departed (
    page_id bigint PRIMARY KEY,
    seq bigint NOT NULL UNIQUE,
    url text NOT NULL,
    site text NOT NULL
);
CREATE TABLE arrived (page_id bigint PRIMARY KEY, version bigint NOT NULL);
-- Keyed hashes of the URLs and sites that were forgotten, and their key.
CREATE TABLE forgotten (mark text COLLATE "C" PRIMARY KEY, at double precision NOT NULL);
CREATE TABLE forgotten_key (id bigint PRIMARY KEY CHECK (id = 1), key text NOT NULL);
-- References to bodies elsewhere that no version names since then, until their objects are deleted.
CREATE TABLE unused_bodies (reference bytea PRIMARY KEY, since double precision NOT NULL);
CREATE INDEX unused_bodies_by_age ON unused_bodies (since);
-- Which server has numbered the changes: see `epochs.py`.
CREATE TABLE epochs (
    name text COLLATE "C" PRIMARY KEY,
    server text NOT NULL,
    after bigint NOT NULL,
    begins bigint NOT NULL UNIQUE
);

-- What each visit updates or deletes is vacuumed at a twentieth of dead rows, not at a fifth: a lease passes over dead
-- entries of its indexes. A visit changes an indexed column of `visited`, so room beside its rows would save nothing.
ALTER TABLE leases SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000);
ALTER TABLE unvisited SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000);
ALTER TABLE visited SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000);
ALTER TABLE sites SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000);
ALTER TABLE documents SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000);
ALTER TABLE near_runs SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);
ALTER TABLE counters SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);
ALTER TABLE refusals SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);

INSERT INTO levada_store DEFAULT VALUES;
-- Ids begin where those of the shard do.
CREATE SEQUENCE site_numbers START {first_site};
CREATE SEQUENCE tokens START {first_token};
