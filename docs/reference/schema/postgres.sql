DO $$ BEGIN IF to_regnamespace('public') IS NULL THEN CREATE SCHEMA "public"; END IF; END $$;
CREATE TABLE IF NOT EXISTS "public"."reprise_migration" (number integer PRIMARY KEY, name text NOT NULL, applied_at_ms bigint NOT NULL, works_with integer);

-- 1: markers of keys
CREATE TABLE "public"."reprise_marker" (id text PRIMARY KEY, format integer NOT NULL DEFAULT 1, value text, claimed_at_ms bigint NOT NULL);
INSERT INTO "public"."reprise_migration" (number, name, applied_at_ms, works_with) VALUES (1, 'markers of keys', (extract(epoch FROM clock_timestamp()) * 1000)::bigint, 1);

-- 2: records of operations, audit notes, fences
ALTER TABLE "public"."reprise_marker" ADD COLUMN version integer NOT NULL DEFAULT 1, ADD COLUMN mode text NOT NULL DEFAULT 'atomic', ADD COLUMN operation text, ADD COLUMN scope text, ADD COLUMN fingerprint text, ADD COLUMN state text NOT NULL DEFAULT 'succeeded', ADD COLUMN token text, ADD COLUMN fence bigint, ADD COLUMN first_claimed_at_ms bigint, ADD COLUMN due_at_ms bigint, ADD COLUMN completed_at_ms bigint, ADD COLUMN expires_at_ms bigint, ADD COLUMN claims integer NOT NULL DEFAULT 1, ADD COLUMN looks integer NOT NULL DEFAULT 0, ADD COLUMN codec text, ADD COLUMN input text, ADD COLUMN because text;
CREATE INDEX "reprise_marker_due" ON "public"."reprise_marker" (due_at_ms) WHERE due_at_ms IS NOT NULL;
CREATE INDEX "reprise_marker_expires" ON "public"."reprise_marker" (expires_at_ms) WHERE expires_at_ms IS NOT NULL;
CREATE TABLE "public"."reprise_audit" (number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, id text NOT NULL, at_ms bigint NOT NULL, action text NOT NULL, actor text NOT NULL, reason text NOT NULL, from_state text NOT NULL, to_state text NOT NULL);
CREATE INDEX "reprise_audit_id" ON "public"."reprise_audit" (id, number);
CREATE INDEX "reprise_audit_at" ON "public"."reprise_audit" (at_ms);
CREATE SEQUENCE "public"."reprise_fence" AS bigint NO CYCLE CACHE 1;
INSERT INTO "public"."reprise_migration" (number, name, applied_at_ms, works_with) VALUES (2, 'records of operations, audit notes, fences', (extract(epoch FROM clock_timestamp()) * 1000)::bigint, 1);

-- 3: dedupe windows
CREATE TABLE "public"."reprise_window" (name text NOT NULL PRIMARY KEY, pepper text NOT NULL DEFAULT 'none', last bigint NOT NULL);
CREATE TABLE "public"."reprise_seen" (id text NOT NULL PRIMARY KEY, window_name text NOT NULL, number bigint NOT NULL, at_ms bigint NOT NULL);
CREATE INDEX "reprise_seen_order" ON "public"."reprise_seen" (window_name, number);
INSERT INTO "public"."reprise_migration" (number, name, applied_at_ms, works_with) VALUES (3, 'dedupe windows', (extract(epoch FROM clock_timestamp()) * 1000)::bigint, 1);

-- 4: producers of sequences
CREATE TABLE "public"."reprise_sequence" (sequence text NOT NULL, producer text NOT NULL, epoch bigint NOT NULL, number bigint NOT NULL, fingerprint text, value text, used_at_ms bigint NOT NULL, PRIMARY KEY (sequence, producer));
INSERT INTO "public"."reprise_migration" (number, name, applied_at_ms, works_with) VALUES (4, 'producers of sequences', (extract(epoch FROM clock_timestamp()) * 1000)::bigint, 1);

-- 5: messages
CREATE TABLE "public"."reprise_head" (key text NOT NULL PRIMARY KEY, epoch bigint NOT NULL, number bigint NOT NULL, purged_version bigint, at_ms bigint NOT NULL);
CREATE TABLE "public"."reprise_message" (source text NOT NULL, id text NOT NULL, type text NOT NULL, subject text, key text NOT NULL, epoch bigint NOT NULL, number bigint NOT NULL, version bigint, at_ms bigint NOT NULL, intent text, traceparent text, schema text, codec text, data text NOT NULL, PRIMARY KEY (key, epoch, number));
CREATE UNIQUE INDEX "reprise_message_identity" ON "public"."reprise_message" (source, id);
CREATE UNIQUE INDEX "reprise_message_version" ON "public"."reprise_message" (subject, version) WHERE version IS NOT NULL;
CREATE INDEX "reprise_message_at" ON "public"."reprise_message" (at_ms);
CREATE TABLE "public"."reprise_reader" (name text NOT NULL PRIMARY KEY, kind text NOT NULL, reads text NOT NULL, told_to text, at_ms bigint NOT NULL);
CREATE TABLE "public"."reprise_lane" (reader text NOT NULL, key text NOT NULL, epoch bigint NOT NULL DEFAULT 0, number bigint NOT NULL DEFAULT 0, known_epoch bigint NOT NULL DEFAULT 0, known_number bigint NOT NULL DEFAULT 0, state integer NOT NULL DEFAULT 0, due_at_ms bigint NOT NULL DEFAULT 0, owner text, attempt bigint NOT NULL DEFAULT 0, claims integer NOT NULL DEFAULT 0, failures integer NOT NULL DEFAULT 0, history text NOT NULL DEFAULT '', PRIMARY KEY (reader, key));
CREATE INDEX "reprise_lane_due" ON "public"."reprise_lane" (reader, due_at_ms) WHERE state = 1;
CREATE TABLE "public"."reprise_processed" (reader text NOT NULL, source text NOT NULL, id text NOT NULL, fingerprint text NOT NULL, at_ms bigint NOT NULL, PRIMARY KEY (reader, source, id));
CREATE INDEX "reprise_processed_at" ON "public"."reprise_processed" (at_ms);
CREATE TABLE "public"."reprise_inbox" (reader text NOT NULL, fingerprint text NOT NULL, source text NOT NULL, id text NOT NULL, type text NOT NULL, subject text, key text NOT NULL, epoch bigint NOT NULL, number bigint NOT NULL, version bigint, at_ms bigint NOT NULL, intent text, traceparent text, schema text, codec text, data text NOT NULL, PRIMARY KEY (reader, key, epoch, number));
CREATE UNIQUE INDEX "reprise_inbox_identity" ON "public"."reprise_inbox" (reader, source, id);
CREATE TABLE "public"."reprise_dead_letter" (reader text NOT NULL, kind text NOT NULL, source text NOT NULL, id text NOT NULL, type text NOT NULL, subject text, key text NOT NULL, epoch bigint NOT NULL, number bigint NOT NULL, version bigint, at_ms bigint NOT NULL, intent text, traceparent text, schema text, codec text, data text NOT NULL, state text NOT NULL, parks integer NOT NULL, code text NOT NULL, reason text NOT NULL, history text NOT NULL, decision text, note text, first_at_ms bigint NOT NULL, last_at_ms bigint NOT NULL, PRIMARY KEY (reader, source, id));
CREATE INDEX "reprise_dead_letter_open" ON "public"."reprise_dead_letter" (reader, key) WHERE state <> 'closed';
INSERT INTO "public"."reprise_migration" (number, name, applied_at_ms, works_with) VALUES (5, 'messages', (extract(epoch FROM clock_timestamp()) * 1000)::bigint, 1);

-- 6: memory of consumers
ALTER TABLE "public"."reprise_reader" ADD COLUMN memory_ms bigint;
INSERT INTO "public"."reprise_migration" (number, name, applied_at_ms, works_with) VALUES (6, 'memory of consumers', (extract(epoch FROM clock_timestamp()) * 1000)::bigint, 1);
