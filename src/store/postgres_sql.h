#pragma once

// The tables of a run in PostgreSQL, and what is asked of them.
//
// Claimers take bundles: cases that are handed out together. A claim changes one row, however many
// cases its bundle has, and a case that has come to something is one new row in `finished`, which
// is written only while the epoch of its bundle still is the one that it was claimed with.

namespace assay::postgres {

inline constexpr int kSchemaVersion = 2;

inline constexpr const char* kSchema = R"sql(
CREATE TABLE assay_schema (version integer NOT NULL);
CREATE TABLE property (key text PRIMARY KEY, value text NOT NULL);
CREATE TABLE bundle (number bigint PRIMARY KEY, dearest_us bigint NOT NULL,
                     epoch bigint NOT NULL DEFAULT 0, claimer text, held_until timestamptz,
                     done boolean NOT NULL DEFAULT false);
CREATE INDEX bundle_open ON bundle (dearest_us DESC, number) WHERE NOT done;
CREATE TABLE planned (id bigint PRIMARY KEY, bundle bigint NOT NULL, text text NOT NULL,
                      elements bigint NOT NULL, bytes bigint NOT NULL, work_us bigint NOT NULL);
CREATE INDEX planned_bundle ON planned (bundle);
CREATE TABLE finished (sequence bigserial PRIMARY KEY, id bigint NOT NULL UNIQUE,
                       outcome text NOT NULL, mismatch integer NOT NULL, flags integer NOT NULL,
                       lane text NOT NULL, message text NOT NULL, attempts bigint NOT NULL,
                       at_ms bigint NOT NULL, took_us bigint NOT NULL, record bytea);
CREATE TABLE invalid (place text, text text, message text);
)sql";

// Tables of a connection: what it adds, which cases it added, what it has to record.
inline constexpr const char* kOwnTables = R"sql(
CREATE TEMPORARY TABLE adding (id bigint, text text, elements bigint, bytes bigint, work_us bigint);
CREATE TEMPORARY TABLE mine (id bigint PRIMARY KEY, bundle bigint);
CREATE TEMPORARY TABLE incoming (id bigint, bundle bigint, epoch bigint, outcome text,
                                 mismatch integer, flags integer, lane text, message text,
                                 attempts bigint, at_ms bigint, took_us bigint,
                                 record bytea) ON COMMIT DELETE ROWS;
)sql";

// ---- planning ----

// Those who plan the same run do so one after the other.
inline constexpr const char* kPlanAlone =
    "SELECT pg_advisory_xact_lock(hashtext('assay plan'), hashtext(current_schema()))";

// A query of what cases took in every run of this database that we may read; NULL: there is none.
inline constexpr const char* kEarlierRuns = R"sql(
SELECT string_agg(format('SELECT id, took_us FROM %I.finished WHERE took_us > 0', nspname),
                  ' UNION ALL ')
FROM pg_namespace n JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = 'finished'
     JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'took_us'
WHERE to_regclass(format('%I.assay_schema', nspname)) IS NOT NULL
  AND has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT')
)sql";

inline constexpr const char* kKnownEstimates = R"sql(
UPDATE planned p SET elements = a.elements, bytes = a.bytes FROM adding a
WHERE p.id = a.id AND (p.elements, p.bytes) IS DISTINCT FROM (a.elements, a.bytes)
)sql";

// New cases, the most expensive first, cut into bundles of $1 microseconds, or $2 bundles if these
// are more; one that takes longer has a bundle to itself. {} is the query of earlier costs.
inline constexpr const char* kAddToBundles = R"sql(
WITH learned AS (SELECT id, avg(took_us)::bigint AS us FROM ({}) AS earlier GROUP BY id),
     fresh AS (SELECT a.id, text, elements, bytes, coalesce(us, work_us) AS work_us
               FROM adding a LEFT JOIN learned USING (id)
               WHERE NOT EXISTS (SELECT FROM planned p WHERE p.id = a.id)),
     cut AS (SELECT (SELECT coalesce(max(number), 0) + 1 FROM bundle) AS first,
                    (SELECT least($1, ceil(sum(work_us) / $2)) FROM fresh) AS work_us)
INSERT INTO planned
  SELECT id, cut.first + div(coalesce(sum(fresh.work_us) OVER before, 0), cut.work_us), text,
         elements, bytes, fresh.work_us
  FROM fresh, cut
  WINDOW before AS (ORDER BY fresh.work_us DESC, id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
  ON CONFLICT (id) DO NOTHING
)sql";

inline constexpr const char* kNewBundles = R"sql(
INSERT INTO bundle (number, dearest_us)
  SELECT bundle, max(work_us) FROM planned
  WHERE bundle > (SELECT coalesce(max(number), 0) FROM bundle) GROUP BY bundle
)sql";

inline constexpr const char* kForget = R"sql(
WITH gone AS (DELETE FROM finished WHERE outcome = $1 RETURNING id),
     open AS (SELECT bundle FROM planned JOIN gone USING (id)),
     opened AS (UPDATE bundle SET done = false WHERE number IN (SELECT bundle FROM open))
SELECT count(*) FROM gone
)sql";

// ---- leases ----

inline constexpr const char* kClaim = R"sql(
UPDATE bundle SET epoch = epoch + 1, claimer = $1, held_until = now() + $2 * interval '1 ms'
FROM (SELECT number AS next FROM bundle
      WHERE NOT done AND (held_until IS NULL
                           OR (held_until < now() AND claimer IS DISTINCT FROM $1))
        AND (NOT $4 OR number IN (SELECT bundle FROM mine))
      ORDER BY dearest_us DESC, number LIMIT $3 FOR UPDATE SKIP LOCKED) AS free
WHERE number = next RETURNING number, epoch
)sql";

inline constexpr const char* kClaimedCases = R"sql(
SELECT id, bundle, text, elements, bytes, work_us FROM planned p
WHERE bundle = ANY ($1::bigint[]) AND NOT EXISTS (SELECT FROM finished f WHERE f.id = p.id)
  AND (NOT $2 OR id IN (SELECT id FROM mine))
ORDER BY bundle, work_us DESC, id
)sql";

// Bundles that this claimer might yet get.
inline constexpr const char* kHeldElsewhere = R"sql(
SELECT EXISTS (SELECT FROM bundle WHERE NOT done AND claimer IS DISTINCT FROM $1
               AND (NOT $2 OR number IN (SELECT bundle FROM mine)))
)sql";

inline constexpr const char* kRenew =
    "UPDATE bundle SET held_until = now() + $2 * interval '1 ms' WHERE claimer = $1 AND NOT done";

// All but the bundles of $2.
inline constexpr const char* kRelease =
    "UPDATE bundle SET claimer = NULL, held_until = NULL "
    "WHERE claimer = $1 AND NOT done AND number <> ALL ($2::bigint[])";

inline constexpr const char* kRecord = R"sql(
WITH held AS (SELECT number, epoch FROM bundle WHERE number IN (SELECT bundle FROM incoming)
              ORDER BY number FOR SHARE)
INSERT INTO finished (id, outcome, mismatch, flags, lane, message, attempts, at_ms, took_us, record)
  SELECT DISTINCT ON (i.id) i.id, outcome, mismatch, flags, lane, message, attempts, at_ms, took_us,
                            record
  FROM incoming i JOIN held h ON i.bundle = h.number AND i.epoch = h.epoch ORDER BY i.id
  ON CONFLICT (id) DO NOTHING
)sql";

// Bundles of which this claimer has ended all that it was given: done, or for others to claim.
inline constexpr const char* kSettle = R"sql(
WITH ended AS (SELECT unnest($1::bigint[]) AS number, unnest($2::bigint[]) AS epoch),
     settled AS (UPDATE bundle b SET claimer = NULL, held_until = NULL,
                   done = NOT EXISTS (SELECT FROM planned p WHERE p.bundle = b.number AND NOT EXISTS
                                        (SELECT FROM finished f WHERE f.id = p.id))
                 FROM ended e WHERE b.number = e.number AND b.epoch = e.epoch RETURNING b.number)
DELETE FROM mine WHERE bundle IN (SELECT number FROM settled)
)sql";

// ---- reading ----

inline constexpr const char* kFinished =
    "SELECT f.id, p.text, outcome, mismatch, flags, lane, message, attempts, at_ms, took_us, "
    "record "
    "FROM finished f JOIN planned p USING (id) ORDER BY sequence";

inline constexpr const char* kUnfinished =
    "SELECT id, text, elements, bytes, work_us FROM planned p "
    "WHERE NOT EXISTS (SELECT FROM finished f WHERE f.id = p.id) ORDER BY text";

inline constexpr const char* kCounts =
    "SELECT (SELECT count(*) FROM planned), (SELECT count(*) FROM finished)";

}  // namespace assay::postgres
