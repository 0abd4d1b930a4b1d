DO $$ BEGIN IF to_regnamespace('public') IS NULL THEN CREATE SCHEMA "public"; END IF; END $$;
CREATE TABLE IF NOT EXISTS "public"."reprise_migration" (number integer PRIMARY KEY, name text NOT NULL, applied_at_ms bigint NOT NULL);

-- 1: markers of keys
CREATE TABLE "public"."reprise_marker" (id text PRIMARY KEY, format integer NOT NULL DEFAULT 1, value text, claimed_at_ms bigint NOT NULL);
INSERT INTO "public"."reprise_migration" (number, name, applied_at_ms) VALUES (1, 'markers of keys', (extract(epoch FROM clock_timestamp()) * 1000)::bigint);
