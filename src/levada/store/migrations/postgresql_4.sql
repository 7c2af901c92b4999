-- PostgreSQL, format 3 to 4. The same tables and columns stand in postgresql/schema.sql; a new column stands last in
-- both.
CREATE TABLE near_runs (site_id bigint PRIMARY KEY, runs bytea NOT NULL);
ALTER TABLE documents ADD COLUMN text_key bigint;
CREATE INDEX documents_by_text ON documents (text_key, page_id) WHERE text_key IS NOT NULL;
ALTER TABLE versions ADD COLUMN facts bytea;
ALTER TABLE versions ADD COLUMN data bytea;
-- Keyed hashes of the URLs and sites that were forgotten, and their key.
CREATE TABLE forgotten (mark text COLLATE "C" PRIMARY KEY, at double precision NOT NULL);
CREATE TABLE forgotten_key (id bigint PRIMARY KEY CHECK (id = 1), key text NOT NULL);
-- Which server has numbered the changes.
CREATE TABLE epochs (
    name text COLLATE "C" PRIMARY KEY,
    server text NOT NULL,
    after bigint NOT NULL,
    begins bigint NOT NULL UNIQUE
);
-- As in postgresql/schema.sql.
ALTER TABLE visited RESET (fillfactor);
ALTER TABLE leases SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000);
ALTER TABLE unvisited SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000);
ALTER TABLE visited SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000);
ALTER TABLE sites SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000);
ALTER TABLE documents SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000);
ALTER TABLE near_runs SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);
ALTER TABLE counters SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);
ALTER TABLE refusals SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);
-- References to bodies elsewhere that no version names since then, until their objects are deleted.
CREATE TABLE unused_bodies (reference bytea PRIMARY KEY, since double precision NOT NULL);
CREATE INDEX unused_bodies_by_age ON unused_bodies (since);
