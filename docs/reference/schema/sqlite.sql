CREATE TABLE IF NOT EXISTS "reprise_migration" (number INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at_ms INTEGER NOT NULL, works_with INTEGER);

-- 1: markers of keys
CREATE TABLE "reprise_marker" (id TEXT NOT NULL PRIMARY KEY, format INTEGER NOT NULL DEFAULT 1, value TEXT, claimed_at_ms INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS "reprise_meta" (name TEXT PRIMARY KEY, value TEXT NOT NULL);
INSERT INTO "reprise_migration" (number, name, applied_at_ms, works_with) VALUES (1, 'markers of keys', CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER), 1);

-- 2: records of operations, audit notes, fences
ALTER TABLE "reprise_marker" ADD COLUMN version INTEGER NOT NULL DEFAULT 1;
ALTER TABLE "reprise_marker" ADD COLUMN mode TEXT NOT NULL DEFAULT 'atomic';
ALTER TABLE "reprise_marker" ADD COLUMN operation TEXT;
ALTER TABLE "reprise_marker" ADD COLUMN scope TEXT;
ALTER TABLE "reprise_marker" ADD COLUMN fingerprint TEXT;
ALTER TABLE "reprise_marker" ADD COLUMN state TEXT NOT NULL DEFAULT 'succeeded';
ALTER TABLE "reprise_marker" ADD COLUMN token TEXT;
ALTER TABLE "reprise_marker" ADD COLUMN fence INTEGER;
ALTER TABLE "reprise_marker" ADD COLUMN first_claimed_at_ms INTEGER;
ALTER TABLE "reprise_marker" ADD COLUMN due_at_ms INTEGER;
ALTER TABLE "reprise_marker" ADD COLUMN completed_at_ms INTEGER;
ALTER TABLE "reprise_marker" ADD COLUMN expires_at_ms INTEGER;
ALTER TABLE "reprise_marker" ADD COLUMN claims INTEGER NOT NULL DEFAULT 1;
ALTER TABLE "reprise_marker" ADD COLUMN looks INTEGER NOT NULL DEFAULT 0;
ALTER TABLE "reprise_marker" ADD COLUMN codec TEXT;
ALTER TABLE "reprise_marker" ADD COLUMN input TEXT;
ALTER TABLE "reprise_marker" ADD COLUMN because TEXT;
CREATE INDEX "reprise_marker_due" ON "reprise_marker" (due_at_ms) WHERE due_at_ms IS NOT NULL;
CREATE INDEX "reprise_marker_expires" ON "reprise_marker" (expires_at_ms) WHERE expires_at_ms IS NOT NULL;
CREATE TABLE "reprise_audit" (number INTEGER PRIMARY KEY, id TEXT NOT NULL, at_ms INTEGER NOT NULL, action TEXT NOT NULL, actor TEXT NOT NULL, reason TEXT NOT NULL, from_state TEXT NOT NULL, to_state TEXT NOT NULL);
CREATE INDEX "reprise_audit_id" ON "reprise_audit" (id, number);
CREATE INDEX "reprise_audit_at" ON "reprise_audit" (at_ms);
CREATE TABLE "reprise_fence" (one INTEGER PRIMARY KEY CHECK (one = 1), number INTEGER NOT NULL);
INSERT INTO "reprise_fence" (one, number) VALUES (1, 0);
INSERT INTO "reprise_migration" (number, name, applied_at_ms, works_with) VALUES (2, 'records of operations, audit notes, fences', CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER), 1);

-- 3: records in the order of their arrival
CREATE TABLE "reprise_marker_moved" (id TEXT NOT NULL PRIMARY KEY, format INTEGER NOT NULL DEFAULT 1, value TEXT, claimed_at_ms INTEGER NOT NULL, version INTEGER NOT NULL DEFAULT 1, mode TEXT NOT NULL DEFAULT 'atomic', operation TEXT, scope TEXT, fingerprint TEXT, state TEXT NOT NULL DEFAULT 'succeeded', token TEXT, fence INTEGER, first_claimed_at_ms INTEGER, due_at_ms INTEGER, completed_at_ms INTEGER, expires_at_ms INTEGER, claims INTEGER NOT NULL DEFAULT 1, looks INTEGER NOT NULL DEFAULT 0, codec TEXT, input TEXT, because TEXT);
INSERT INTO "reprise_marker_moved" (id, format, value, claimed_at_ms, version, mode, operation, scope, fingerprint, state, token, fence, first_claimed_at_ms, due_at_ms, completed_at_ms, expires_at_ms, claims, looks, codec, input, because) SELECT id, format, value, claimed_at_ms, version, mode, operation, scope, fingerprint, state, token, fence, first_claimed_at_ms, due_at_ms, completed_at_ms, expires_at_ms, claims, looks, codec, input, because FROM "reprise_marker" ORDER BY claimed_at_ms;
DROP TABLE "reprise_marker";
ALTER TABLE "reprise_marker_moved" RENAME TO "reprise_marker";
CREATE INDEX "reprise_marker_due" ON "reprise_marker" (due_at_ms) WHERE due_at_ms IS NOT NULL;
CREATE INDEX "reprise_marker_expires" ON "reprise_marker" (expires_at_ms) WHERE expires_at_ms IS NOT NULL;
INSERT INTO "reprise_migration" (number, name, applied_at_ms, works_with) VALUES (3, 'records in the order of their arrival', CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER), 1);

-- 4: dedupe windows
CREATE TABLE "reprise_window" (name TEXT NOT NULL PRIMARY KEY, pepper TEXT NOT NULL DEFAULT 'none', last INTEGER NOT NULL);
CREATE TABLE "reprise_seen" (id TEXT NOT NULL PRIMARY KEY, window_name TEXT NOT NULL, number INTEGER NOT NULL, at_ms INTEGER NOT NULL);
CREATE INDEX "reprise_seen_order" ON "reprise_seen" (window_name, number);
INSERT INTO "reprise_migration" (number, name, applied_at_ms, works_with) VALUES (4, 'dedupe windows', CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER), 1);

-- 5: producers of sequences
CREATE TABLE "reprise_sequence" (sequence TEXT NOT NULL, producer TEXT NOT NULL, epoch INTEGER NOT NULL, number INTEGER NOT NULL, fingerprint TEXT, value TEXT, used_at_ms INTEGER NOT NULL, PRIMARY KEY (sequence, producer)) WITHOUT ROWID;
INSERT INTO "reprise_migration" (number, name, applied_at_ms, works_with) VALUES (5, 'producers of sequences', CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER), 1);

-- 6: messages
CREATE TABLE "reprise_head" (key TEXT NOT NULL PRIMARY KEY, epoch INTEGER NOT NULL, number INTEGER NOT NULL, purged_version INTEGER, at_ms INTEGER NOT NULL);
CREATE TABLE "reprise_message" (source TEXT NOT NULL, id TEXT NOT NULL, type TEXT NOT NULL, subject TEXT, key TEXT NOT NULL, epoch INTEGER NOT NULL, number INTEGER NOT NULL, version INTEGER, at_ms INTEGER NOT NULL, intent TEXT, traceparent TEXT, schema TEXT, codec TEXT, data TEXT NOT NULL, PRIMARY KEY (key, epoch, number));
CREATE UNIQUE INDEX "reprise_message_identity" ON "reprise_message" (source, id);
CREATE UNIQUE INDEX "reprise_message_version" ON "reprise_message" (subject, version) WHERE version IS NOT NULL;
CREATE INDEX "reprise_message_at" ON "reprise_message" (at_ms);
CREATE TABLE "reprise_reader" (name TEXT NOT NULL PRIMARY KEY, kind TEXT NOT NULL, reads TEXT NOT NULL, told_to TEXT, at_ms INTEGER NOT NULL);
CREATE TABLE "reprise_lane" (reader TEXT NOT NULL, key TEXT NOT NULL, epoch INTEGER NOT NULL DEFAULT 0, number INTEGER NOT NULL DEFAULT 0, known_epoch INTEGER NOT NULL DEFAULT 0, known_number INTEGER NOT NULL DEFAULT 0, state INTEGER NOT NULL DEFAULT 0, due_at_ms INTEGER NOT NULL DEFAULT 0, owner TEXT, attempt INTEGER NOT NULL DEFAULT 0, claims INTEGER NOT NULL DEFAULT 0, failures INTEGER NOT NULL DEFAULT 0, history TEXT NOT NULL DEFAULT '', PRIMARY KEY (reader, key));
CREATE INDEX "reprise_lane_due" ON "reprise_lane" (reader, due_at_ms) WHERE state = 1;
CREATE TABLE "reprise_processed" (reader TEXT NOT NULL, source TEXT NOT NULL, id TEXT NOT NULL, fingerprint TEXT NOT NULL, at_ms INTEGER NOT NULL, PRIMARY KEY (reader, source, id));
CREATE INDEX "reprise_processed_at" ON "reprise_processed" (at_ms);
CREATE TABLE "reprise_inbox" (reader TEXT NOT NULL, fingerprint TEXT NOT NULL, source TEXT NOT NULL, id TEXT NOT NULL, type TEXT NOT NULL, subject TEXT, key TEXT NOT NULL, epoch INTEGER NOT NULL, number INTEGER NOT NULL, version INTEGER, at_ms INTEGER NOT NULL, intent TEXT, traceparent TEXT, schema TEXT, codec TEXT, data TEXT NOT NULL, PRIMARY KEY (reader, key, epoch, number));
CREATE UNIQUE INDEX "reprise_inbox_identity" ON "reprise_inbox" (reader, source, id);
CREATE TABLE "reprise_dead_letter" (reader TEXT NOT NULL, kind TEXT NOT NULL, source TEXT NOT NULL, id TEXT NOT NULL, type TEXT NOT NULL, subject TEXT, key TEXT NOT NULL, epoch INTEGER NOT NULL, number INTEGER NOT NULL, version INTEGER, at_ms INTEGER NOT NULL, intent TEXT, traceparent TEXT, schema TEXT, codec TEXT, data TEXT NOT NULL, state TEXT NOT NULL, parks INTEGER NOT NULL, code TEXT NOT NULL, reason TEXT NOT NULL, history TEXT NOT NULL, decision TEXT, note TEXT, first_at_ms INTEGER NOT NULL, last_at_ms INTEGER NOT NULL, PRIMARY KEY (reader, source, id));
CREATE INDEX "reprise_dead_letter_open" ON "reprise_dead_letter" (reader, key) WHERE state <> 'closed';
INSERT INTO "reprise_migration" (number, name, applied_at_ms, works_with) VALUES (6, 'messages', CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER), 1);

-- 7: memory of consumers
ALTER TABLE "reprise_reader" ADD COLUMN memory_ms INTEGER;
INSERT INTO "reprise_migration" (number, name, applied_at_ms, works_with) VALUES (7, 'memory of consumers', CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER), 1);
