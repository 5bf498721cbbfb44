//! The statements of an outbox on PostgreSQL.
use std::sync::Arc;

use sqlx::{Pool, Postgres, Result, Transaction};

use crate::database::open::begin;
use crate::database::store::{stats, unknown_kinds};
use crate::outbox::{DeadKey, Kind, OutboxConfig, Tables, UNKNOWN};

/// The statements of one outbox.
pub(crate) struct Sql {
    pub(super) verify: Arc<str>,
    pub(super) insert: Arc<str>,
    pub(super) find: Arc<str>,
    pub(super) claim: Arc<str>,
    pub(super) hold: Arc<str>,
    pub(super) sent: Arc<str>,
    pub(super) decided: Arc<str>,
    pub(super) failed: Arc<str>,
    pub(super) release: Arc<str>,
    pub(super) promote: Arc<str>,
    pub(super) mend: Arc<str>,
    pub(super) forget: Arc<str>,
    pub(super) submission: Arc<str>,
    pub(super) unknown_kinds: Arc<str>,
    pub(super) stats: Arc<str>,
    pub(super) dead: Arc<str>,
    pub(super) redrive: Arc<str>,
    pub(super) inbox_insert: Arc<str>,
    pub(super) inbox_result: Arc<str>,
    pub(super) inbox_store: Arc<str>,
    /// Serialises what decides the head of a key: holding back and letting go on.
    heads_lock: i64,
}

/// The database's clock in milliseconds, stable within a statement so that an index can be searched by it.
const NOW: &str = "(extract(epoch from statement_timestamp()) * 1000)::bigint";

impl Sql {
    pub(super) fn new(tables: &Tables, config: &OutboxConfig) -> Self {
        let (t, inbox, job) = (tables.outbox(), tables.inbox(), Kind::Job.name());
        // A row that keeps later rows of its key waiting.
        let live = match config.dead_key {
            DeadKey::Block => "TRUE",
            DeadKey::Skip => "h.state <> 'dead'",
        };
        let head = format!(
            "(SELECT h.id FROM {t} h WHERE h.order_key = k.order_key AND {live} ORDER BY h.seq LIMIT 1)"
        );
        // Each kind by itself, so that an index has its rows in order; `$7` says which are taken at all.
        // A set operation takes no FOR UPDATE but one level down.
        let each = |rows: &dyn Fn(&str) -> String, limit: &str| {
            let numbered = (1..).zip(Kind::ALL);
            let each = numbered.map(|(at, kind): (i32, Kind)| {
                let rows = rows(kind.name());
                format!("SELECT * FROM ({rows} LIMIT CASE WHEN ($7::boolean[])[{at}] THEN {limit} ELSE 0 END FOR UPDATE SKIP LOCKED) k{at}")
            });
            each.collect::<Vec<_>>().join(" UNION ALL ")
        };
        let fresh = each(
            &|kind| {
                format!(
                    "SELECT r.id, r.seq, r.order_key, octet_length(r.body) AS size FROM {t} r WHERE r.kind = '{kind}' AND r.state = 'pending' AND NOT r.held ORDER BY r.seq"
                )
            },
            "$2",
        );
        let due = |condition: &str| {
            let each = each(
                &|kind| {
                    format!(
                        "SELECT r.id, r.due_at, octet_length(r.body) AS size FROM {t} r WHERE r.state IN ('leased', 'failed') AND r.kind = '{kind}' AND {condition} ORDER BY r.due_at"
                    )
                },
                "$2 / 4 + 1",
            );
            format!("SELECT d.id, d.size FROM ({each}) d ORDER BY d.due_at LIMIT $2 / 4 + 1")
        };
        let text = |sql: String| Arc::from(sql);
        Self {
            verify: text(format!("SELECT outcome FROM {t}, {inbox} LIMIT 0")),
            insert: text(format!(
                "INSERT INTO {t} (id, kind, name, subject, headers, body, order_key, enqueued_at) VALUES ($1, $2, $3, $4, $5, $6, $7, {NOW} + $8) ON CONFLICT (id) DO NOTHING"
            )),
            find: text(format!("SELECT kind, name, subject, body, order_key FROM {t} WHERE id = $1")),
            claim: text(format!(
                "WITH clock AS (SELECT {NOW} + $5 AS ms),
                 fresh AS MATERIALIZED (SELECT f.id, f.seq, f.size, f.order_key IS NOT NULL AND EXISTS (SELECT 1 FROM {t} h WHERE h.order_key = f.order_key AND h.seq < f.seq AND {live}) AS behind FROM ({fresh}) f ORDER BY f.seq LIMIT $2),
                 due AS MATERIALIZED ({}),
                 beyond AS MATERIALIZED ({}),
                 found AS (SELECT id, seq, size FROM fresh WHERE NOT behind UNION ALL SELECT id, 0, size FROM due UNION ALL SELECT id, 0, size FROM beyond),
                 page AS (SELECT id, sum(size) OVER (ORDER BY seq ROWS UNBOUNDED PRECEDING) - size AS before FROM found),
                 claimed AS (UPDATE {t} r SET state = 'leased', token = $1, due_at = (SELECT ms FROM clock) + $3, first_sent_at = coalesce(r.first_sent_at, (SELECT ms FROM clock)) FROM page p WHERE r.id = p.id AND p.before < $6 RETURNING r.seq, r.id, r.kind, r.name, r.subject, r.headers, r.body, r.order_key, r.attempts, (SELECT ms FROM clock) - r.first_sent_at AS sent_ago)
                 SELECT FALSE AS behind, seq, id, kind, name, subject, headers, body, order_key, attempts, sent_ago FROM claimed UNION ALL SELECT TRUE, 0, id, '', '', '', '', ''::bytea, NULL, 0, 0 FROM fresh WHERE behind",
                due("r.due_at <= (SELECT ms FROM clock)"),
                due("r.due_at > (SELECT ms FROM clock) + $4"),
            )),
            hold: text(format!(
                "UPDATE {t} r SET held = TRUE WHERE r.id = ANY($1) AND r.state = 'pending' AND EXISTS (SELECT 1 FROM {t} h WHERE h.order_key = r.order_key AND h.seq < r.seq AND {live})"
            )),
            sent: text(format!("DELETE FROM {t} WHERE id = ANY($1) AND token = $2")),
            decided: text(format!(
                "UPDATE {t} r SET state = 'dispatched', outcome = d.outcome, decided_at = {NOW} + $4, token = NULL, due_at = NULL, reason = NULL FROM unnest($1::text[], $2::text[]) AS d(id, outcome) WHERE r.id = d.id AND r.token = $3"
            )),
            failed: text(format!(
                "UPDATE {t} r SET state = CASE WHEN f.delay < 0 THEN 'dead' ELSE 'failed' END, due_at = CASE WHEN f.delay < 0 THEN NULL ELSE {NOW} + $5 + f.delay END, attempts = r.attempts + 1, reason = f.reason, token = NULL, first_sent_at = CASE WHEN f.unsent THEN NULL ELSE r.first_sent_at END FROM unnest($1::text[], $2::bigint[], $3::text[], $6::boolean[]) AS f(id, delay, reason, unsent) WHERE r.id = f.id AND r.token = $4"
            )),
            release: text(format!(
                "UPDATE {t} SET state = 'pending', token = NULL, due_at = NULL, first_sent_at = CASE WHEN id = ANY($3) THEN NULL ELSE first_sent_at END WHERE id = ANY($1) AND token = $2"
            )),
            promote: text(format!(
                "UPDATE {t} SET held = FALSE WHERE held AND id IN (SELECT {head} FROM unnest($1::text[]) AS k(order_key))"
            )),
            mend: text(format!(
                "UPDATE {t} SET held = FALSE WHERE held AND id IN (SELECT {head} FROM (SELECT DISTINCT order_key FROM {t} WHERE held) k)"
            )),
            forget: text(format!(
                "DELETE FROM {t} WHERE id IN (SELECT id FROM {t} WHERE state = 'dispatched' AND kind = '{job}' AND decided_at <= {NOW} + $3 - $1 ORDER BY decided_at LIMIT $2 FOR UPDATE SKIP LOCKED)"
            )),
            submission: text(format!("SELECT state, outcome, reason FROM {t} WHERE id = $1")),
            unknown_kinds: text(unknown_kinds(t, "state = 'pending' AND NOT held")),
            stats: text(stats(t, &format!("{NOW} + $1 - enqueued_at"), "held", "NOT held", "FALSE")),
            dead: text(format!(
                "SELECT id, kind, name, subject, order_key, attempts, coalesce(reason, '') FROM {t} WHERE state = 'dead' ORDER BY seq LIMIT $1"
            )),
            redrive: text(format!(
                "UPDATE {t} SET state = 'pending', held = FALSE, attempts = 0, reason = NULL, first_sent_at = CASE WHEN reason LIKE '{UNKNOWN}%' THEN NULL ELSE first_sent_at END WHERE id = $1 AND state = 'dead'"
            )),
            inbox_insert: text(format!(
                "INSERT INTO {inbox} (consumer, root_id, handled_at) VALUES ($1, $2, {NOW} + $3) ON CONFLICT (consumer, root_id) DO NOTHING"
            )),
            inbox_result: text(format!("SELECT result FROM {inbox} WHERE consumer = $1 AND root_id = $2")),
            inbox_store: text(format!("UPDATE {inbox} SET result = $3 WHERE consumer = $1 AND root_id = $2")),
            heads_lock: tables.lock_id("heads", ""),
        }
    }

    /// Begin what decides the heads of keys. Its statements see everything that was decided before.
    pub(super) async fn decide_heads(&self, pool: &Pool<Postgres>) -> Result<Transaction<'static, Postgres>> {
        let (mut tx, ()) = begin(pool, ()).await?;
        sqlx::query("SELECT pg_advisory_xact_lock($1)").bind(self.heads_lock).execute(&mut *tx).await?;
        Ok(tx)
    }
}
