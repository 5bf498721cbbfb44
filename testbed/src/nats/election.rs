//! Who leads a stream or a consumer of a cluster, asked of JetStream itself.

use std::time::Duration;

use serde_json::Value;

use super::Cluster;
use super::client::Client;
use super::cluster::ELECTION_LIMIT;
use crate::Error;
use crate::deadline::poll;

/// A node that is suspended takes connections and says nothing: the next one is asked after this.
const PATIENCE: Duration = Duration::from_secs(2);
/// What the server says of something that is not there; other errors pass with an election.
const NOT_FOUND: u64 = 404;

impl Cluster {
    /// The name of the node that leads the stream; waits for an election where there is no leader.
    ///
    /// A leader that was suspended and goes on takes itself for the leader until it hears of the new one.
    pub fn leader_of_stream(&self, stream: &str) -> Result<String, Error> {
        self.leader_of(&format!("$JS.API.STREAM.INFO.{stream}"), &format!("a leader of stream {stream}"))
    }

    /// The name of the node that leads the stream's consumer; waits for an election where there is no leader.
    pub fn leader_of_consumer(&self, stream: &str, consumer: &str) -> Result<String, Error> {
        self.leader_of(
            &format!("$JS.API.CONSUMER.INFO.{stream}.{consumer}"),
            &format!("a leader of consumer {consumer} of stream {stream}"),
        )
    }

    /// Asks JetStream in its own words (a subject of its API and JSON) through the first node that answers.
    pub fn ask(&self, subject: &str, body: &str) -> Result<String, Error> {
        self.answer_to(subject, body).map(|answer| answer.to_string())
    }

    /// The names of the streams that there are, as many as fit into one answer (1024).
    pub(super) fn stream_names(&self) -> Result<Vec<String>, Error> {
        let answer = self.answer_to("$JS.API.STREAM.NAMES", "")?;
        let names = answer.get("streams").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        Ok(names.iter().filter_map(Value::as_str).map(str::to_owned).collect())
    }

    /// Makes the stream that stays, as soon as the nodes know each other well enough.
    pub(super) fn keep_a_stream(&self) -> Result<(), Error> {
        let (subject, body) = (format!("$JS.API.STREAM.CREATE.{}", Self::KEPT), kept_stream());
        let mut refusal = String::new();
        let made = poll(ELECTION_LIMIT, || match self.ask(&subject, &body) {
            Err(Error::Refused { answer, .. }) => {
                refusal = format!("; JetStream said {answer}");
                Ok(None)
            }
            done => done.map(Some),
        })?;
        made.map(drop).ok_or_else(|| self.out_of_time(format!("a stream with three replicas{refusal}")))
    }

    fn leader_of(&self, subject: &str, awaited: &str) -> Result<String, Error> {
        let found = poll(ELECTION_LIMIT, || match self.try_to_ask(subject, "") {
            Some(answer) => leader_in(subject, &answer),
            None => Ok(None),
        })?;
        found.ok_or_else(|| self.out_of_time(awaited))
    }

    fn answer_to(&self, subject: &str, body: &str) -> Result<Value, Error> {
        let answered = poll(ELECTION_LIMIT, || Ok(self.try_to_ask(subject, body)))?;
        let answer = answered.ok_or_else(|| self.out_of_time(format!("an answer to `{subject}`")))?;
        answer.get("error").map_or(Ok(()), |error| Err(refused(subject, error)))?;
        Ok(answer)
    }

    fn try_to_ask(&self, subject: &str, body: &str) -> Option<Value> {
        let running = self.nodes().iter().filter(|node| node.is_running());
        running.map(|node| Client::connect(node.port(), PATIENCE)?.ask(subject, body)).find_map(Result::ok)
    }
}

fn leader_in(subject: &str, answer: &Value) -> Result<Option<String>, Error> {
    match answer.get("error") {
        Some(error) if error.get("code").and_then(Value::as_u64) == Some(NOT_FOUND) => {
            Err(refused(subject, error))
        }
        _ => Ok(answer.pointer("/cluster/leader").and_then(Value::as_str).map(str::to_owned)),
    }
}

fn refused(subject: &str, error: &Value) -> Error {
    Error::Refused { request: subject.into(), answer: error.to_string() }
}

fn kept_stream() -> String {
    let name = Cluster::KEPT;
    format!(r#"{{"name":"{name}","subjects":["testbed.kept"],"storage":"file","num_replicas":3}}"#)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_leader_is_read_where_there_is_one() {
        let led = json!({"cluster": {"leader": "one", "replicas": [{"name": "two"}]}});
        assert_eq!(leader_in("s", &led).unwrap().unwrap(), "one");
        assert_eq!(leader_in("s", &json!({"cluster": {"replicas": []}})).unwrap(), None);
    }

    #[test]
    fn only_what_is_not_there_is_not_waited_for() {
        let electing =
            json!({"error": {"code": 503, "description": "JetStream system temporarily unavailable"}});
        assert_eq!(leader_in("s", &electing).unwrap(), None);

        let missing = json!({"error": {"code": 404, "description": "stream not found"}});
        let message = leader_in("$JS.API.STREAM.INFO.S", &missing).unwrap_err().to_string();
        assert!(message.contains("stream not found") && message.contains("STREAM.INFO.S"), "{message}");
    }
}
