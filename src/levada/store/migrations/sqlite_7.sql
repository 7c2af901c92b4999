-- SQLite, format 6 to 7. The same tables and columns stand in sqlite/schema.sql; a new column stands last in both.
CREATE TABLE near_runs (site_id INTEGER PRIMARY KEY, runs BLOB NOT NULL);
ALTER TABLE pages ADD COLUMN text_key INTEGER;
CREATE INDEX pages_by_text ON pages (text_key) WHERE text_key IS NOT NULL;
