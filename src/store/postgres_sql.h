#pragma once

// The tables of a run in PostgreSQL, and the SQL statements that use them.
//
// Claimers take bundles of cases. A claim changes one row, however many cases its bundle has. A
// case that has a verdict is one new row in `finished`. It is written only if its bundle still has
// the epoch with which it was claimed.

namespace assay::postgres {

inline constexpr int kSchemaVersion = 7;
inline constexpr int kVersionWithoutFaults = 6;  // the first claimer that writes upgrades it

// `finished.sequence` and the sums have no default. An older assay that still writes here therefore
// fails, because it would leave them out.
//
// The rows of `tally` add up to the run's sums (Tally::text()) and learned costs
// (LearnedCosts::text()). Each commit of results adds a row, so that no claimer waits for another;
// now and then a claimer replaces all rows by their sum. A plan reads the costs, and from
// `finished` only the cases that took {0} µs or more.
//
// `bundle.work_us` is the expected work of a bundle, `left_us` that of the bundle and of all
// bundles that are claimed after it; 0: not known.
inline constexpr const char* kSchema = R"sql(
CREATE TABLE assay_schema (version integer NOT NULL);
CREATE TABLE property (key text PRIMARY KEY, value text NOT NULL);
CREATE TABLE bundle (number bigint PRIMARY KEY, rank bigint NOT NULL, left_over bigint NOT NULL,
                     epoch bigint NOT NULL DEFAULT 0, claimer text, held_until timestamptz,
                     done boolean NOT NULL DEFAULT false, work_us bigint NOT NULL DEFAULT 0,
                     left_us bigint NOT NULL DEFAULT 0)
  WITH (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.02);
CREATE INDEX bundle_free ON bundle (rank DESC, number) WHERE NOT done AND claimer IS NULL;
CREATE INDEX bundle_held ON bundle (held_until) WHERE NOT done AND claimer IS NOT NULL;
CREATE TABLE planned (id bigint NOT NULL, bundle bigint NOT NULL, text text NOT NULL,
                      elements bigint NOT NULL, bytes bigint NOT NULL, work_us bigint NOT NULL);
CREATE TABLE finished (sequence bigserial PRIMARY KEY, id bigint NOT NULL UNIQUE,
                       outcome text NOT NULL, mismatch integer NOT NULL, flags integer NOT NULL,
                       lane text NOT NULL, message text NOT NULL, attempts bigint NOT NULL,
                       at_ms bigint NOT NULL, took_us bigint NOT NULL, record bytea,
                       faults text NOT NULL);
ALTER TABLE finished ALTER sequence DROP DEFAULT;
CREATE INDEX finished_expensive ON finished (took_us, id) WHERE took_us >= {0};
CREATE TABLE invalid (place text, text text, message text);
CREATE TABLE tally (changes text NOT NULL, costs text NOT NULL)
  WITH (autovacuum_vacuum_scale_factor = 0.02);
ALTER TABLE tally ALTER changes SET STORAGE EXTERNAL, ALTER costs SET STORAGE EXTERNAL;
)sql";
inline constexpr const char* kAddFaults = R"sql(
LOCK TABLE bundle, finished IN ACCESS EXCLUSIVE MODE;
ALTER TABLE finished ADD COLUMN faults text NOT NULL DEFAULT '';
ALTER TABLE finished ALTER faults DROP DEFAULT;
DROP INDEX finished_told
)sql";

// The indexes of `planned`. A large first plan creates them after it has inserted its cases.
inline constexpr const char* kPlannedIndexes = R"sql(
ALTER TABLE planned ADD CONSTRAINT planned_pkey PRIMARY KEY (id);
CREATE INDEX planned_bundle ON planned (bundle);
)sql";
inline constexpr const char* kNoPlannedIndexes = R"sql(
ALTER TABLE planned DROP CONSTRAINT planned_pkey;
DROP INDEX planned_bundle;
)sql";

// The cases that this connection has added.
inline constexpr const char* kMineTable =
    "CREATE TEMPORARY TABLE IF NOT EXISTS mine (id bigint PRIMARY KEY, bundle bigint)";

// ---- planning ----

// Lets one plan of a run at a time proceed.
inline constexpr const char* kPlanAlone =
    "SELECT pg_advisory_xact_lock(hashtext('assay plan'), hashtext(current_schema()))";

// Gives two queries, each NULL if no run provides it: the times of single cases, and the learned
// costs, in all runs of this database that the user may read. The first covers the cases that took
// {0} µs or more, and all cases of a run that keeps no sums.
inline constexpr const char* kEarlierRuns = R"sql(
SELECT string_agg(format('SELECT id, took_us FROM %I.finished WHERE took_us >= %s', nspname,
                         CASE WHEN sums THEN {0} ELSE 1 END), ' UNION ALL '),
       string_agg(format('SELECT costs FROM %I.tally', nspname), ' UNION ALL ') FILTER (WHERE sums)
FROM (SELECT nspname, EXISTS (SELECT FROM pg_attribute WHERE attrelid = tally AND attname = 'costs')
                      AND has_table_privilege(tally, 'SELECT') AS sums
      FROM (SELECT nspname, to_regclass(format('%I.tally', nspname)) AS tally
            FROM pg_namespace n
                 JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = 'finished'
                 JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'took_us'
            WHERE to_regclass(format('%I.assay_schema', nspname)) IS NOT NULL
              AND has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT')
           ) AS runs) AS known
)sql";

// Whether nothing is planned yet, and the table `planned` belongs to this user.
inline constexpr const char* kMayBeBare = R"sql(
SELECT NOT EXISTS (SELECT FROM planned) AND pg_has_role(relowner, 'MEMBER')
FROM pg_class WHERE oid = 'planned'::regclass
)sql";

// {} is the first query of kEarlierRuns.
inline constexpr const char* kLearnedOfEach =
    "SELECT id, avg(took_us)::bigint FROM ({}) AS earlier GROUP BY id";

inline constexpr const char* kNewEstimates = R"sql(
UPDATE planned p SET elements = c.elements, bytes = c.bytes FROM changed c WHERE p.id = c.id
)sql";

// How cases failed before a retest. Made by the first claimer that writes.
inline constexpr const char* kFailedBefore =
    "CREATE TABLE IF NOT EXISTS failed_before (id bigint PRIMARY KEY, ending text NOT NULL)";

// Removes results and gives them, in the columns of finished_rows(). {}: failures_to_note(), or a
// query without effect.
inline constexpr const char* kForget = R"sql(
WITH gone AS (DELETE FROM finished WHERE outcome = $1 RETURNING *),
     noted AS ({}),
     again AS (SELECT bundle, count(*) AS cases FROM planned JOIN gone USING (id) GROUP BY bundle),
     opened AS (UPDATE bundle SET done = false, left_over = left_over + cases
                FROM again WHERE number = bundle)
SELECT f.id, p.text, outcome, mismatch, flags, lane, message, attempts, at_ms, took_us, faults,
       record
FROM gone f JOIN planned p USING (id)
)sql";

// ---- leases ----

// Claims {2} bundles: free ones, and those whose lease has expired. Each row is a case with its
// bundle's number, new epoch and `left_us`; a bundle without unfinished cases gives one row without
// a case. A bundle in its first epoch has no finished cases, so they are not looked up.
// $1: the claimer; $2: milliseconds of the lease; $3: the largest work of a bundle in µs.
// {0} and {1}: conditions on bundles and cases; {3}: kFirst or kLast. OFFSET 0 keeps the planner
// from joining all cases: it looks cases up bundle by bundle, whatever it estimates.
inline constexpr const char* kClaim = R"sql(
WITH free AS (SELECT number, rank FROM bundle
              WHERE NOT done AND claimer IS NULL AND work_us <= $3 {0}
              ORDER BY {3} LIMIT {2} FOR UPDATE SKIP LOCKED),
     lost AS (SELECT number, rank FROM bundle
              WHERE NOT done AND claimer IS NOT NULL AND held_until < now() AND claimer <> $1
                    AND work_us <= $3 {0}
              ORDER BY held_until LIMIT {2} FOR UPDATE SKIP LOCKED),
     best AS (SELECT number AS next FROM (SELECT * FROM free UNION ALL SELECT * FROM lost) AS either
              ORDER BY {3} LIMIT {2}),
     taken AS (UPDATE bundle SET epoch = epoch + 1, claimer = $1,
                                 held_until = now() + $2 * interval '1 ms'
               FROM best WHERE number = next RETURNING number, epoch, left_us)
SELECT number, epoch, left_us, p.* FROM taken LEFT JOIN LATERAL
  (SELECT id, text, elements, bytes, work_us,
          (SELECT ending FROM failed_before b WHERE b.id = p.id) FROM planned p
   WHERE bundle = number AND (epoch = 1 OR NOT EXISTS (SELECT FROM finished f WHERE f.id = p.id)) {1}
   OFFSET 0) AS p ON true
ORDER BY number, work_us DESC, id
)sql";
// The order of a claim: the most expensive bundles first, or the last bundles of a plan first.
inline constexpr const char* kFirst = "rank DESC, number";
inline constexpr const char* kLast = "rank, number DESC";
// The work that nobody has claimed yet.
inline constexpr const char* kLeft = R"sql(
SELECT coalesce((SELECT left_us FROM bundle WHERE NOT done AND claimer IS NULL
                 ORDER BY rank DESC, number LIMIT 1), 0)
)sql";
inline constexpr const char* kBundleIsMine = "AND number IN (SELECT bundle FROM mine)";
inline constexpr const char* kCaseIsMine = "AND id IN (SELECT id FROM mine)";

// Whether this claimer might still get a bundle. {0} is a condition on bundles.
inline constexpr const char* kHeldElsewhere =
    "SELECT EXISTS (SELECT FROM bundle WHERE NOT done AND claimer IS NULL {0}) OR "
    "EXISTS (SELECT FROM bundle WHERE NOT done AND claimer <> $1 {0})";

inline constexpr const char* kRenew = R"sql(
UPDATE bundle SET held_until = now() + $2 * interval '1 ms'
WHERE number = ANY ($3::bigint[]) AND claimer = $1 AND NOT done
)sql";

// Releases all bundles of the claimer $1 except $2.
inline constexpr const char* kRelease =
    "UPDATE bundle SET claimer = NULL, held_until = NULL "
    "WHERE claimer = $1 AND NOT done AND number <> ALL ($2::bigint[])";

// Records results and updates their bundles in one statement.
//
// $1 to $12: columns of the cases; $13: all records, one after another. $14 to $16: the bundles'
// numbers, epochs, and whether this claimer has finished all cases that it was given of the bundle.
// Bundles with another epoch, and their cases, are skipped. A bundle without unfinished cases is
// done; otherwise, if the claimer has finished its cases, others can claim the bundle.
//
// The commit does not wait for the disk. A database that crashes may lose the results of its last
// second together with their changes to bundles; these cases run again. Claims and plans do wait.
// {0} and {1}: kWithTally and kAllRecorded, or "" and kWhichRecorded.
inline constexpr const char* kRecord = R"sql(
WITH ended AS MATERIALIZED (
       SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::integer[], $5::integer[],
                            $6::text[], $7::text[], $8::bigint[], $9::bigint[], $10::bigint[],
                            $11::text[], $12::integer[])
         AS e (id, in_bundle, outcome, mismatch, flags, lane, message, attempts, at_ms, took_us,
               faults, size)),
     placed AS MATERIALIZED (
       SELECT *, 1 + coalesce(sum(size) OVER (ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0)
                   ::integer AS first FROM ended),
     ours AS MATERIALIZED (
       SELECT number AS our, of.is_ended FROM bundle b
         JOIN unnest($14::bigint[], $15::bigint[], $16::boolean[]) AS of (bundle, its_epoch, is_ended)
           ON b.number = of.bundle AND b.epoch = of.its_epoch
       ORDER BY number FOR NO KEY UPDATE OF b),
     recorded AS (
       INSERT INTO finished (sequence, id, outcome, mismatch, flags, lane, message, attempts, at_ms,
                             took_us, faults, record)
         SELECT nextval('finished_sequence_seq'), id, outcome, mismatch, flags, lane, message,
                attempts, at_ms, took_us, faults, substring($13::bytea FROM first FOR size)
         FROM placed JOIN ours ON in_bundle = our
         ON CONFLICT (id) DO NOTHING RETURNING id),
     less AS (SELECT in_bundle, count(*) AS cases FROM ended JOIN recorded USING (id) GROUP BY 1),
     settled AS (
       UPDATE bundle SET left_over = left_over - coalesce(cases, 0),
                         done = left_over <= coalesce(cases, 0),
                         claimer = CASE WHEN NOT is_ended THEN claimer END,
                         held_until = CASE WHEN NOT is_ended THEN held_until END
       FROM ours LEFT JOIN less ON in_bundle = our WHERE number = our){0}
SELECT {1}, set_config('synchronous_commit', 'off', true) FROM recorded
)sql";
// Records all cases or none. $17: what the cases add to the sums; $18: their learned costs; $19:
// their number. If fewer are recorded, the statement divides by zero and is rolled back.
inline constexpr const char* kWithTally =
    ", summed AS (INSERT INTO tally (changes, costs) SELECT $17::text, $18::text WHERE $17 <> '')";
inline constexpr const char* kAllRecorded = "count(*) / (count(*) = $19::bigint)::integer";
inline constexpr const char* kNotAllRecorded = "22012";  // SQLSTATE
// Records the cases that it can, and gives their ids, so that kWriteTally can add their sums.
inline constexpr const char* kWhichRecorded = "coalesce(array_agg(id), '{}')";
inline constexpr const char* kWriteTally = "INSERT INTO tally (changes, costs) VALUES ($1, $2)";

// Taken by the claimer that replaces all rows of `tally` by their sum.
inline constexpr const char* kTallyIsFree =
    "SELECT pg_try_advisory_xact_lock(hashtext('assay tally'), hashtext(current_schema()))";
inline constexpr const char* kTakeTally =
    "WITH gone AS (DELETE FROM tally RETURNING changes, costs) "
    "SELECT changes, costs, set_config('synchronous_commit', 'off', true) FROM gone";
inline constexpr const char* kTally = "SELECT changes FROM tally";

inline constexpr const char* kMineAreLeft = "DELETE FROM mine WHERE bundle = ANY ($1::bigint[])";

// ---- reading ----

inline constexpr const char* kUnfinished =
    "SELECT id, text, elements, bytes, work_us FROM planned p "
    "WHERE NOT EXISTS (SELECT FROM finished f WHERE f.id = p.id) ORDER BY text";

inline constexpr const char* kCounts =
    "SELECT (SELECT count(*) FROM planned), (SELECT count(*) FROM finished)";

inline constexpr const char* kHolders = R"sql(
SELECT claimer, count(*), sum(left_over), extract(epoch FROM max(held_until) - now())::float8
FROM bundle WHERE NOT done AND claimer IS NOT NULL GROUP BY claimer ORDER BY claimer
)sql";

inline constexpr const char* kUnfinishedCount =
    "SELECT coalesce(sum(left_over), 0)::bigint FROM bundle WHERE NOT done";

// The other runs of this database that the user may read, and an estimate of their finished cases.
inline constexpr const char* kOtherRuns = R"sql(
SELECT nspname, greatest(reltuples, 0)::float8
FROM pg_namespace n JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = 'finished'
     JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'took_us'
WHERE to_regclass(format('%I.assay_schema', nspname)) IS NOT NULL AND nspname <> current_schema()
  AND has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT')
  AND has_table_privilege(format('%I.property', nspname), 'SELECT')
)sql";
inline constexpr const char* kCurrentRun = "SELECT current_schema()";
// {0}: the schema; {1}: the percentage of rows that is read.
inline constexpr const char* kTotals =
    "SELECT outcome, count(*), max(at_ms) FROM {0}.finished TABLESAMPLE SYSTEM ({1}) GROUP BY 1";
inline constexpr const char* kTallyOf = "SELECT changes FROM {}.tally";
inline constexpr const char* kMayReadTally = R"sql(
SELECT coalesce(has_table_privilege(to_regclass(format('%I.tally', $1::text)), 'SELECT'), false)
)sql";
inline constexpr const char* kPropertiesOf = "SELECT key, value FROM {}.property";

// The highest sequence number of a result, and the open transactions of other writers.
inline constexpr const char* kNewest = "SELECT coalesce(max(sequence), 0) FROM finished";
inline constexpr const char* kUnderWay =
    "SELECT transactionid::text::bigint FROM pg_locks WHERE locktype = 'transactionid' "
    "AND mode = 'ExclusiveLock' AND granted AND pid <> pg_backend_pid()";

// Up to $2 listed cases with a sequence number above $1 and at most $6: those with an outcome of $3
// and, if $4, those with an outcome of $5 and a flag. {0} is is_listed().
inline constexpr const char* kListedAfter = R"sql(
SELECT f.sequence, f.id, p.text, f.outcome, mismatch, flags, lane, message, attempts, at_ms, took_us,
       faults, record
FROM (SELECT each.* FROM unnest($3::text[]) AS failed, LATERAL
        (SELECT * FROM finished
         WHERE outcome = failed AND {0} AND sequence > $1 AND sequence <= $6
         ORDER BY sequence LIMIT $2) AS each
      UNION ALL
      SELECT each.* FROM unnest($5::text[]) AS other, LATERAL
        (SELECT * FROM finished
         WHERE $4 AND outcome = other AND flags <> 0 AND {0} AND sequence > $1 AND sequence <= $6
         ORDER BY sequence LIMIT $2) AS each) AS f
     JOIN planned p USING (id)
ORDER BY f.sequence LIMIT $2
)sql";

}  // namespace assay::postgres
