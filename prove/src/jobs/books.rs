//! The books: what the log and the database say of each job, read without the engine.
use std::collections::{BTreeMap, HashMap};
use std::fmt;

use serde::Serialize;
use serde_json::Value;

use super::worker::work::Task;

/// Most tries, by the contract.
const TRIES: u64 = 6;
/// Breaches that are listed.
const LISTED: usize = 20;

/// One entry of a job's log.
pub(crate) struct Entry {
    pub(crate) id: String,
    pub(crate) token: String,
    pub(crate) body: Value,
}

/// What was counted.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Books {
    pub(crate) jobs: usize,
    /// How jobs ended, by the last word of their logs.
    pub(crate) ends: BTreeMap<String, usize>,
    pub(crate) effects: usize,
    /// Tries that began.
    pub(crate) started: usize,
    /// Tries that a stop gave back.
    pub(crate) handed_back: usize,
    /// Tries whose process ended under them.
    pub(crate) interrupted: usize,
    /// What is not as it must be.
    pub(crate) breaches: Vec<String>,
    pub(crate) breach_count: usize,
}

impl Books {
    /// Balance the log and the effects against what was asked for.
    pub(crate) fn balance(tasks: &[Task], entries: &[Entry], effects: &HashMap<u64, usize>) -> Self {
        let mut logs: HashMap<&str, Vec<&Entry>> = HashMap::new();
        for entry in entries {
            logs.entry(&entry.id).or_default().push(entry);
        }
        let mut books = Self { effects: effects.values().sum(), ..Self::default() };
        for task in tasks {
            let id = job_id(task.number);
            let effect = effects.get(&task.number).copied().unwrap_or_default();
            match logs.remove(id.as_str()) {
                Some(log) => books.job(task, &id, &log, effect),
                None => books.breach(format!("{id} has no log")),
            }
        }
        for id in logs.keys() {
            books.breach(format!("{id} was never created"));
        }
        books
    }

    fn job(&mut self, task: &Task, id: &str, log: &[&Entry], effect: usize) {
        self.jobs += 1;
        let tokens: Vec<&str> = log.iter().map(|entry| entry.token.as_str()).collect();
        let end = tokens.last().copied().unwrap_or_default();
        *self.ends.entry(end.to_owned()).or_default() += 1;
        let told = || format!("{id}: {}", tokens.join(" "));
        if tokens.first() != Some(&"created")
            || tokens.iter().filter(|token| **token == "created").count() != 1
        {
            self.breach(format!("not created once: {}", told()));
        }
        let ends = ["completed", "failed", "dead", "expired", "cancelled"];
        if tokens.iter().filter(|token| ends.contains(token)).count() != 1 || !ends.contains(&end) {
            self.breach(format!("not ended once, as the last thing: {}", told()));
        }
        // Every entry counts the tries as the rules say.
        let (mut tries, mut active) = (0_u64, false);
        for entry in log {
            match entry.token.as_str() {
                "started" => {
                    self.started += 1;
                    self.interrupted += usize::from(active);
                    (tries, active) = (tries + 1, true);
                }
                "handed_back" => {
                    self.handed_back += 1;
                    (tries, active) = (tries.saturating_sub(1), false);
                }
                "retry" => active = false,
                _ => {}
            }
            let said = entry.body.get("tries").and_then(Value::as_u64);
            if said != Some(tries) {
                self.breach(format!(
                    "`{}` says {} tries, {tries} are right: {}",
                    entry.token,
                    said.unwrap_or_default(),
                    told()
                ));
            }
        }
        let right = match end {
            "completed" => effect == 1 && !task.fails && !task.kills,
            "failed" => effect == 0 && task.fails,
            // Killed in its last try, or asked to fail so often.
            "dead" => effect <= 1 && tries == TRIES,
            _ => false,
        };
        if !right || tries > TRIES || (task.kills && end != "dead") {
            self.breach(format!("ended as {end} with {effect} effects after {tries} tries: {}", told()));
        }
    }

    fn breach(&mut self, breach: String) {
        self.breach_count += 1;
        if self.breaches.len() < LISTED {
            self.breaches.push(breach);
        }
    }

    pub(crate) fn are_balanced(&self) -> bool {
        self.breach_count == 0
    }
}

impl fmt::Display for Books {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { jobs, ends, effects, started, handed_back, interrupted, .. } = self;
        writeln!(f, "{jobs} jobs ended: {ends:?}; {effects} effects")?;
        writeln!(
            f,
            "{started} tries began, {handed_back} were given back by a stop, {interrupted} lost their process"
        )?;
        for breach in &self.breaches {
            writeln!(f, "BREACH: {breach}")?;
        }
        write!(f, "{} breaches", self.breach_count)
    }
}

/// The id of the job of a task.
pub(crate) fn job_id(number: u64) -> String {
    format!("task-{number}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn log(tokens: &[(&str, u64)]) -> Vec<Entry> {
        let entry = |(token, tries): &(&str, u64)| Entry {
            id: "task-0".into(),
            token: (*token).into(),
            body: json!({ "tries": tries }),
        };
        tokens.iter().map(entry).collect()
    }

    fn breaches(tokens: &[(&str, u64)], effects: usize) -> usize {
        let task = Task { number: 0, errors: 0, fails: false, kills: false, pauses_ms: vec![] };
        Books::balance(&[task], &log(tokens), &HashMap::from([(0, effects)])).breach_count
    }

    #[test]
    fn a_right_log_balances() {
        assert_eq!(breaches(&[("created", 0), ("started", 1), ("completed", 1)], 1), 0);
        assert_eq!(breaches(&[("created", 0), ("started", 1), ("started", 2), ("completed", 2)], 1), 0);
        let back = [("created", 0), ("started", 1), ("handed_back", 0), ("started", 1), ("completed", 1)];
        assert_eq!(breaches(&back, 1), 0);
    }

    #[test]
    fn every_fault_is_seen() {
        let done = [("created", 0), ("started", 1), ("completed", 1)];
        assert!(breaches(&done, 0) > 0 && breaches(&done, 2) > 0);
        assert!(breaches(&[("created", 0), ("started", 1)], 1) > 0);
        assert!(breaches(&[("created", 0), ("created", 0), ("started", 1), ("completed", 1)], 1) > 0);
        assert!(breaches(&[("created", 0), ("started", 2), ("completed", 2)], 1) > 0);
        assert!(breaches(&[("created", 0), ("started", 1), ("completed", 1), ("completed", 1)], 1) > 0);
        assert!(breaches(&[("created", 0), ("started", 1), ("dead", 1)], 0) > 0);
        assert!(breaches(&[], 0) > 0);
    }
}
