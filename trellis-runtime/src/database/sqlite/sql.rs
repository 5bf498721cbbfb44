//! The statements of an outbox on SQLite.
use std::sync::Arc;

use crate::database::store::{stats, unknown_kinds};
use crate::outbox::{DeadKey, Kind, OutboxConfig, Tables, UNKNOWN};

/// The statements of one outbox.
pub(crate) struct Sql {
    pub(super) verify: Arc<str>,
    pub(super) insert: Arc<str>,
    pub(super) find: Arc<str>,
    pub(super) claim: Arc<str>,
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
    pub(super) hold_others: Arc<str>,
    pub(super) inbox_insert: Arc<str>,
    pub(super) inbox_result: Arc<str>,
    pub(super) inbox_store: Arc<str>,
}

/// The database's clock in milliseconds.
const NOW: &str = "CAST(unixepoch('now', 'subsec') * 1000 AS INTEGER)";

impl Sql {
    pub(super) fn new(tables: &Tables, config: &OutboxConfig) -> Self {
        let (t, inbox, job) = (tables.outbox(), tables.inbox(), Kind::Job.name());
        // A row that keeps later rows of its key waiting.
        let live = match config.dead_key {
            DeadKey::Block => "1",
            DeadKey::Skip => "h.state <> 'dead'",
        };
        // Rows of each kind by itself, so that an index has them in order; `?7` and on say which kinds are
        // taken at all.
        let each = |condition: &str, order: &str| {
            let each = (7..).zip(Kind::ALL).map(|(taken, kind): (i32, Kind)| {
                let kind = kind.name();
                format!(
                    "SELECT * FROM (SELECT seq, {order} AS place, length(body) AS size FROM {t} WHERE kind = '{kind}' AND {condition} ORDER BY {order} LIMIT CASE WHEN ?{taken} THEN ?2 ELSE 0 END)"
                )
            });
            format!("{} ORDER BY place", each.collect::<Vec<_>>().join(" UNION ALL "))
        };
        // As many rows of average size as fit: a running sum would cost more than the claim itself.
        let limit = |rows: &str| {
            format!(
                "min(?2, 1 + (SELECT ?6 * count(*) / max(1, total(size)) FROM (SELECT size FROM ({rows} LIMIT ?2))))"
            )
        };
        let fresh = each("state = 'pending' AND held = 0", "seq");
        let due = |condition: String| {
            let due = each(&format!("state IN ('leased', 'failed') AND {condition}"), "due_at");
            format!("SELECT seq FROM ({due} LIMIT CAST(1 + {} / 4 AS INTEGER))", limit(&due))
        };
        let page = format!(
            "SELECT seq FROM ({fresh} LIMIT CAST({} AS INTEGER)) UNION ALL {} UNION ALL {}",
            limit(&fresh),
            due(format!("due_at <= {NOW} + ?5")),
            due(format!("due_at > {NOW} + ?5 + ?4"))
        );
        let first = |key: &str| {
            format!("(SELECT h.seq FROM {t} h WHERE h.order_key = {key} AND {live} ORDER BY h.seq LIMIT 1)")
        };
        let text = |sql: String| Arc::from(sql);
        Self {
            verify: text(format!("SELECT outcome FROM {t}, {inbox} LIMIT 0")),
            insert: text(format!(
                "INSERT INTO {t} (id, kind, name, subject, headers, body, order_key, held, enqueued_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7 IS NOT NULL AND EXISTS (SELECT 1 FROM {t} h WHERE h.order_key = ?7 AND {live}), {NOW} + ?8) ON CONFLICT (id) DO NOTHING"
            )),
            find: text(format!("SELECT kind, name, subject, body, order_key FROM {t} WHERE id = ?1")),
            // Read as bytes: SQLite stores anything in any column, and one odd row must not spoil a page.
            claim: text(format!(
                "UPDATE {t} SET state = 'leased', token = ?1, due_at = {NOW} + ?5 + ?3, first_sent_at = coalesce(first_sent_at, {NOW} + ?5) WHERE seq IN ({page}) RETURNING seq, id, kind, CAST(name AS BLOB), CAST(subject AS BLOB), CAST(headers AS BLOB), CAST(body AS BLOB), order_key, attempts, due_at - ?3 - first_sent_at"
            )),
            sent: text(format!(
                "DELETE FROM {t} WHERE seq IN (SELECT value FROM json_each(?1)) AND token = ?2"
            )),
            decided: text(format!(
                "UPDATE {t} SET state = 'dispatched', outcome = d.outcome, decided_at = {NOW} + ?3, token = NULL, due_at = NULL, reason = NULL FROM (SELECT value ->> 0 AS seq, value ->> 1 AS outcome FROM json_each(?1)) d WHERE {t}.seq = d.seq AND token = ?2"
            )),
            failed: text(format!(
                "UPDATE {t} SET state = CASE WHEN f.delay IS NULL THEN 'dead' ELSE 'failed' END, due_at = {NOW} + ?3 + f.delay, attempts = attempts + 1, reason = f.reason, token = NULL, first_sent_at = CASE WHEN f.unsent THEN NULL ELSE first_sent_at END FROM (SELECT value ->> 0 AS id, value ->> 1 AS delay, value ->> 2 AS reason, value ->> 3 AS unsent FROM json_each(?1)) f WHERE {t}.id = f.id AND token = ?2"
            )),
            release: text(format!(
                "UPDATE {t} SET state = 'pending', token = NULL, due_at = NULL, first_sent_at = CASE WHEN id IN (SELECT value FROM json_each(?3)) THEN NULL ELSE first_sent_at END WHERE id IN (SELECT value FROM json_each(?1)) AND token = ?2"
            )),
            promote: text(format!(
                "UPDATE {t} SET held = 0 WHERE held = 1 AND seq IN (SELECT {} FROM json_each(?1) k)",
                first("k.value")
            )),
            mend: text(format!(
                "UPDATE {t} SET held = 0 WHERE held = 1 AND seq IN (SELECT {} FROM (SELECT DISTINCT order_key FROM {t} WHERE held = 1) k)",
                first("k.order_key")
            )),
            forget: text(format!(
                "DELETE FROM {t} WHERE seq IN (SELECT seq FROM {t} WHERE state = 'dispatched' AND kind = '{job}' AND decided_at <= {NOW} + ?3 - ?1 ORDER BY decided_at LIMIT ?2)"
            )),
            submission: text(format!("SELECT state, outcome, reason FROM {t} WHERE id = ?1")),
            unknown_kinds: text(unknown_kinds(t, "state = 'pending' AND held = 0")),
            stats: text(stats(t, &format!("{NOW} + ?1 - enqueued_at"), "held = 1", "held = 0", "0")),
            dead: text(format!(
                "SELECT id, kind, name, subject, order_key, attempts, coalesce(reason, '') FROM {t} WHERE state = 'dead' ORDER BY seq LIMIT ?1"
            )),
            redrive: text(format!(
                "UPDATE {t} SET state = 'pending', attempts = 0, reason = NULL, first_sent_at = CASE WHEN reason LIKE '{UNKNOWN}%' THEN NULL ELSE first_sent_at END, held = EXISTS (SELECT 1 FROM {t} o WHERE o.order_key = {t}.order_key AND o.state IN ('leased', 'failed')) WHERE id = ?1 AND state = 'dead'"
            )),
            hold_others: text(format!(
                "UPDATE {t} SET held = 1 WHERE order_key = (SELECT order_key FROM {t} WHERE id = ?1) AND state = 'pending' AND id <> ?1"
            )),
            inbox_insert: text(format!(
                "INSERT INTO {inbox} (consumer, root_id, handled_at) VALUES (?1, ?2, {NOW} + ?3) ON CONFLICT (consumer, root_id) DO NOTHING"
            )),
            inbox_result: text(format!("SELECT result FROM {inbox} WHERE consumer = ?1 AND root_id = ?2")),
            inbox_store: text(format!("UPDATE {inbox} SET result = ?3 WHERE consumer = ?1 AND root_id = ?2")),
        }
    }
}
