-- Fills a run in PostgreSQL with :n verdicts, as workers would have recorded them in 732 APIs, with small records: for the time
-- of a report. In the schema of a run that `assay plan` has just made of nothing but a line or two:
--   psql -v n=50000000 -v record=HEX -f bench/report/many_verdicts.sql "postgresql://…"
-- `record` is that of a failed case, in hexadecimal digits (sqlite3 run.db "SELECT hex(record) …"). 50 million take about 25 GB.
\set ON_ERROR_STOP on
\timing on
SET synchronous_commit = off;
SET maintenance_work_mem = '1GB';
SET work_mem = '256MB';
BEGIN;
TRUNCATE planned, finished, bundle, tally;
ALTER TABLE planned DROP CONSTRAINT planned_pkey;
ALTER TABLE finished DROP CONSTRAINT finished_pkey, DROP CONSTRAINT finished_id_key;
DROP INDEX planned_bundle, finished_listed, finished_told, bundle_free, bundle_held;

CREATE FUNCTION pg_temp.api_of(i bigint) RETURNS text IMMUTABLE LANGUAGE sql AS
  $$ SELECT 'paddle.nn.functional.api_' || (hashint8(i / 16) & 2147483647) % 732 $$;
CREATE FUNCTION pg_temp.dtype_of(i bigint) RETURNS text IMMUTABLE LANGUAGE sql AS
  $$ SELECT (ARRAY['float32', 'float16', 'int64', 'float64'])[1 + (i / 3) % 4] $$;
CREATE FUNCTION pg_temp.outcome_of(i bigint) RETURNS text IMMUTABLE LANGUAGE sql AS
  $$ SELECT CASE WHEN i % 1000 < 5 THEN 'mismatch' WHEN i % 1000 = 5 THEN 'crash' WHEN i % 1000 = 6 THEN 'test_error'
                 WHEN i % 1000 < 80 THEN 'no_kernel' WHEN i % 1000 < 100 THEN 'rejected' ELSE 'pass' END $$;
CREATE FUNCTION pg_temp.flags_of(i bigint) RETURNS integer IMMUTABLE LANGUAGE sql AS
  $$ SELECT CASE WHEN i % 1000 >= 100 AND i % 20 = 1 THEN 8 WHEN i % 5000 = 500 THEN 2 ELSE 0 END $$;

INSERT INTO bundle (number, rank, left_over, epoch, done)
  SELECT b, 100000, 0, 1, true FROM generate_series(0, :n / 16) AS b;
INSERT INTO planned (id, bundle, text, elements, bytes, work_us)
  SELECT hashint8extended(i, 7), i / 16,
         format('%s(Tensor([%s, 7], "%s"))', pg_temp.api_of(i), i, pg_temp.dtype_of(i)), 7 * i, 28 * i, 7000
  FROM generate_series(1::bigint, :n) AS i;
INSERT INTO finished (sequence, id, outcome, mismatch, flags, lane, message, attempts, at_ms, took_us, record)
  SELECT i, hashint8extended(i, 7), pg_temp.outcome_of(i), CASE WHEN i % 1000 < 5 THEN 8 ELSE 0 END, pg_temp.flags_of(i),
         CASE WHEN i % 1000 < 7 THEN 'paddle' ELSE '' END, CASE WHEN i % 1000 < 7 THEN 'max diff 3.5 at [0, ' || i || ']' ELSE '' END,
         1, 1780000000000 + 7 * i, 7000,
         CASE WHEN i % 1000 < 7 THEN decode(:'record', 'hex') ELSE decode(repeat('07', 100), 'hex') END
  FROM generate_series(1::bigint, :n) AS i;
SELECT setval('finished_sequence_seq', :n);
-- What the workers' commits would have come to, in the lines of src/store/tally.h.
INSERT INTO tally (changes, costs)
  SELECT string_agg(line, ''), (
    SELECT string_agg(format(E'%s\t%s\t%s\t%s\t%s\n', api, dtype, step, cases, 7000 * cases), '') FROM (
      SELECT pg_temp.api_of(i) AS api, pg_temp.dtype_of(i) AS dtype, (floor(log(2, 7 * i))::integer + 1) / 2 AS step, count(*) AS cases
      FROM generate_series(1::bigint, :n) AS i GROUP BY 1, 2, 3) AS kinds) FROM (
    SELECT format(E'case\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t0\t0\t0\t0\t0\t0\t0\t0\t0\n', pg_temp.api_of(i), pg_temp.dtype_of(i),
                  CASE WHEN 7 * i <= 100 THEN 1 WHEN 7 * i <= 10000 THEN 2 WHEN 7 * i <= 1000000 THEN 3
                       WHEN 7 * i <= 100000000 THEN 4 ELSE 5 END,
                  pg_temp.outcome_of(i), pg_temp.flags_of(i), count(*), 7000 * count(*)) AS line
    FROM generate_series(1::bigint, :n) AS i
    GROUP BY pg_temp.api_of(i), pg_temp.dtype_of(i), pg_temp.outcome_of(i), pg_temp.flags_of(i),
             CASE WHEN 7 * i <= 100 THEN 1 WHEN 7 * i <= 10000 THEN 2 WHEN 7 * i <= 1000000 THEN 3
                  WHEN 7 * i <= 100000000 THEN 4 ELSE 5 END
    UNION ALL
    SELECT format(E'minute\t%s\t%s\t%s\n', (1780000000000 + 7 * i) / 60000, count(*), count(*) FILTER (WHERE i % 1000 < 7))
    FROM generate_series(1::bigint, :n) AS i GROUP BY (1780000000000 + 7 * i) / 60000) AS lines;
ALTER TABLE planned ADD CONSTRAINT planned_pkey PRIMARY KEY (id);
CREATE INDEX planned_bundle ON planned (bundle);
ALTER TABLE finished ADD CONSTRAINT finished_pkey PRIMARY KEY (sequence), ADD CONSTRAINT finished_id_key UNIQUE (id);
CREATE INDEX finished_listed ON finished (outcome, sequence)
  WHERE flags <> 0 OR outcome IN ('invalid', 'timeout', 'oom', 'crash', 'test_error', 'reference_error', 'mismatch', 'unstable', 'slow');
CREATE INDEX finished_told ON finished (id) INCLUDE (outcome, flags) WHERE outcome <> 'pass' OR flags & 2 <> 0;
CREATE INDEX bundle_free ON bundle (rank DESC, number) WHERE NOT done AND claimer IS NULL;
CREATE INDEX bundle_held ON bundle (held_until) WHERE NOT done AND claimer IS NOT NULL;
COMMIT;
VACUUM ANALYZE planned, finished, bundle;
