-- SQLite, format 6 to 7. The same tables and columns stand in sqlite/schema.sql; a new column stands last in both.
CREATE TABLE near_runs (site_id INTEGER PRIMARY KEY, runs BLOB NOT NULL);
ALTER TABLE pages ADD COLUMN text_key INTEGER;
CREATE INDEX pages_by_text ON pages (text_key) WHERE text_key IS NOT NULL;
ALTER TABLE versions ADD COLUMN facts BLOB;
ALTER TABLE versions ADD COLUMN data BLOB;
-- Keyed hashes of the URLs and sites that were forgotten, and their key.
CREATE TABLE forgotten (mark TEXT PRIMARY KEY, at REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE forgotten_key (id INTEGER PRIMARY KEY CHECK (id = 1), key TEXT NOT NULL);
-- References to bodies elsewhere that no version names since then, until their objects are deleted.
CREATE TABLE unused_bodies (reference BLOB PRIMARY KEY, since REAL NOT NULL) WITHOUT ROWID;
CREATE INDEX unused_bodies_by_age ON unused_bodies (since);
