//! The jobs of receipts, as their logs in the stream say.
use std::collections::BTreeMap;

use async_nats::jetstream;
use serde::Deserialize;

use crate::Error;
use crate::seen::stream;

/// A job: `orders.send_receipt`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Job {
    /// Its identity.
    pub id: String,
    /// Of which order it sends the receipt.
    pub order_id: String,
    /// Where to.
    pub email: String,
    /// What the order costs.
    pub total_cents: u64,
    /// How often its log begins.
    pub created: usize,
    /// How often work on it began.
    pub tries: u64,
    /// How its log says that it ended; nothing while something is left to do.
    pub ends: Vec<String>,
    /// The mail server's number of the mail, as its result says.
    pub mail: Option<u64>,
}

/// What an entry of a log may hold, as far as it matters here.
#[derive(Deserialize)]
struct Entry {
    payload: Option<Payload>,
    result: Option<Sent>,
}

#[derive(Deserialize)]
struct Payload {
    order_id: String,
    email: String,
    total_cents: u64,
}

#[derive(Deserialize)]
struct Sent {
    mail: u64,
}

/// The last words of subjects after which nothing is left to do.
pub(crate) const ENDS: [&str; 8] =
    ["completed", "failed", "dead", "expired", "cancelled", "skipped", "stale", "dismissed"];

/// Read all logs.
pub(super) async fn read(context: &jetstream::Context, stream: &str) -> Result<Vec<Job>, Error> {
    fold(stream::read(context, stream).await?)
}

fn fold(entries: Vec<(String, Vec<u8>)>) -> Result<Vec<Job>, Error> {
    let mut jobs: BTreeMap<String, Job> = BTreeMap::new();
    for (subject, body) in entries {
        let mut words = subject.rsplit('.');
        let (Some(token), Some(id)) = (words.next(), words.next()) else { continue };
        let job = jobs.entry(id.to_owned()).or_insert_with(|| Job { id: id.to_owned(), ..Job::default() });
        match token {
            "created" => {
                let payload = serde_json::from_slice::<Entry>(&body)?.payload;
                let payload = payload.ok_or_else(|| format!("job {id} has no payload"))?;
                job.created += 1;
                job.order_id = payload.order_id;
                job.email = payload.email;
                job.total_cents = payload.total_cents;
            }
            "started" => job.tries += 1,
            token if ENDS.contains(&token) => {
                job.ends.push(token.to_owned());
                job.mail = serde_json::from_slice::<Entry>(&body)?.result.map(|sent| sent.mail);
            }
            _ => {}
        }
    }
    Ok(jobs.into_values().collect())
}

#[cfg(test)]
mod tests {
    use super::{Job, fold};

    #[test]
    fn a_log_says_what_a_job_was_and_how_it_ended() {
        let created = r#"{"payload":{"order_id":"o","email":"e","total_cents":7}}"#;
        let entries = [
            ("x.a.created", created),
            ("x.b.created", created),
            ("x.a.started", "{}"),
            ("x.a.retry", "{}"),
            ("x.a.started", "{}"),
            ("x.a.completed", r#"{"result":{"mail":3}}"#),
        ];
        let entries = entries.map(|(subject, body)| (subject.to_owned(), body.as_bytes().to_vec()));
        let open = |id: &str| Job {
            id: id.to_owned(),
            order_id: "o".to_owned(),
            email: "e".to_owned(),
            total_cents: 7,
            created: 1,
            ..Job::default()
        };
        let ended = Job { tries: 2, ends: vec!["completed".to_owned()], mail: Some(3), ..open("a") };
        assert_eq!(fold(entries.into()).unwrap(), [ended, open("b")]);
    }
}
