CREATE TABLE IF NOT EXISTS "reprise_migration" (number INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at_ms INTEGER NOT NULL);

-- 1: markers of keys
CREATE TABLE "reprise_marker" (id TEXT NOT NULL PRIMARY KEY, format INTEGER NOT NULL DEFAULT 1, value TEXT, claimed_at_ms INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS "reprise_meta" (name TEXT PRIMARY KEY, value TEXT NOT NULL);
INSERT INTO "reprise_migration" (number, name, applied_at_ms) VALUES (1, 'markers of keys', CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER));
