//! Where it is decided what becomes of a mail, and where every mail that was taken is written down.
use std::collections::HashMap;
use std::io::{self, Write};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::protocol::{Answer, Entry, Mail};

/// How many of a hundred requests come at a bad time.
const BUSY_PERCENT: u32 = 15;
/// How many are told when to come back.
const LATER_PERCENT: u32 = 5;
/// When they may come back.
const LATER_MS: std::ops::Range<u64> = 100..1000;
/// How often one mail is put off.
const MOST_REFUSALS: u32 = 3;
/// The shortest time before and after a decision.
const QUICKEST_MS: u64 = 2;

/// Decides, and remembers.
pub(crate) struct Office {
    file: Box<dyn Write + Send>,
    /// Mails by key, with their numbers.
    taken: HashMap<String, (u64, Mail)>,
    /// How often a mail was put off, by key.
    refused: HashMap<String, u32>,
    domain: String,
    slowest_ms: u64,
    dice: StdRng,
}

impl Office {
    /// Go on where the file ends of which `taken` is the content.
    pub(crate) fn open(
        taken: &str,
        file: Box<dyn Write + Send>,
        domain: &str,
        slowest_ms: u64,
        seed: u64,
    ) -> io::Result<Self> {
        let mut office = Self {
            file,
            taken: HashMap::new(),
            refused: HashMap::new(),
            domain: domain.to_owned(),
            slowest_ms,
            dice: StdRng::seed_from_u64(seed),
        };
        for line in taken.lines() {
            if let Entry::Taken { mail, content } = serde_json::from_str(line)? {
                office.taken.insert(content.key.clone(), (mail, content));
            }
        }
        Ok(office)
    }

    /// How long to think, and how long to hesitate with the answer.
    pub(crate) fn pauses(&mut self) -> (Duration, Duration) {
        let longest = (self.slowest_ms / 2).max(QUICKEST_MS);
        let mut pause = || Duration::from_millis(self.dice.random_range(QUICKEST_MS..=longest));
        (pause(), pause())
    }

    /// Decide on a request.
    ///
    /// # Errors
    /// A mail cannot be written down: then it is not taken.
    pub(crate) fn answer(&mut self, line: &str) -> io::Result<Answer> {
        let mail: Mail = match serde_json::from_str(line) {
            Ok(mail) => mail,
            Err(error) => return Ok(Answer::Bad { reason: error.to_string() }),
        };
        if let Some((number, content)) = self.taken.get(&mail.key) {
            if *content != mail {
                return Ok(Answer::Bad { reason: "the key belongs to another mail".to_owned() });
            }
            let number = *number;
            self.write(&Entry::Repeat { repeat: number })?;
            return Ok(Answer::Sent { mail: number });
        }
        if mail.to.rsplit_once('@').is_none_or(|(_, domain)| domain != self.domain) {
            return Ok(Answer::NoSuchAddress);
        }
        if let Some(refusal) = self.mood(&mail.key) {
            return Ok(refusal);
        }
        let number = self.taken.len() as u64 + 1;
        self.write(&Entry::Taken { mail: number, content: mail.clone() })?;
        self.taken.insert(mail.key.clone(), (number, mail));
        Ok(Answer::Sent { mail: number })
    }

    fn mood(&mut self, key: &str) -> Option<Answer> {
        let refused = self.refused.entry(key.to_owned()).or_default();
        let refusal = match self.dice.random_range(0..100) {
            _ if *refused >= MOST_REFUSALS => return None,
            mood if mood < BUSY_PERCENT => Answer::Busy,
            mood if mood < BUSY_PERCENT + LATER_PERCENT => {
                Answer::Later { after_ms: self.dice.random_range(LATER_MS) }
            }
            _ => return None,
        };
        *refused += 1;
        Some(refusal)
    }

    /// One line, in one write.
    fn write(&mut self, entry: &Entry) -> io::Result<()> {
        let line = serde_json::to_string(entry)? + "\n";
        self.file.write_all(line.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct File(Arc<Mutex<Vec<u8>>>);

    impl File {
        fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }

        fn office(&self) -> Office {
            Office::open(&self.text(), Box::new(self.clone()), "example.com", 60, 7).unwrap()
        }
    }

    impl Write for File {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn request(key: usize, subject: &str) -> String {
        format!(r#"{{"key":"k-{key}","to":"a@example.com","subject":"{subject}"}}"#)
    }

    /// Ask until it is taken.
    fn send(office: &mut Office, request: &str) -> (u64, Vec<Answer>) {
        let mut refusals = Vec::new();
        loop {
            match office.answer(request).unwrap() {
                Answer::Sent { mail } => return (mail, refusals),
                refusal => refusals.push(refusal),
            }
        }
    }

    #[test]
    fn a_repeated_key_is_the_same_mail_even_for_the_next_server() {
        let file = File::default();
        let mut office = file.office();
        assert_eq!(send(&mut office, &request(1, "one")).0, 1);
        assert_eq!(send(&mut office, &request(2, "two")).0, 2);
        assert_eq!(office.answer(&request(1, "one")).unwrap(), Answer::Sent { mail: 1 });
        assert!(matches!(office.answer(&request(1, "other")).unwrap(), Answer::Bad { .. }));
        assert_eq!(file.office().answer(&request(2, "two")).unwrap(), Answer::Sent { mail: 2 });
        let expected = r#"{"mail":1,"key":"k-1","to":"a@example.com","subject":"one"}
{"mail":2,"key":"k-2","to":"a@example.com","subject":"two"}
{"repeat":1}
{"repeat":2}
"#;
        assert_eq!(file.text(), expected);
    }

    #[test]
    fn one_request_in_five_is_put_off_and_no_mail_more_than_three_times() {
        let mut office = File::default().office();
        let sent: Vec<Vec<Answer>> = (0..1000).map(|key| send(&mut office, &request(key, "s")).1).collect();
        let refusals: usize = sent.iter().map(Vec::len).sum();
        assert!((180..320).contains(&refusals), "{refusals}");
        assert!(sent.iter().all(|refusals| refusals.len() <= 3));
        assert!(sent.iter().flatten().any(|refusal| matches!(refusal, Answer::Later { .. })));
    }

    #[test]
    fn what_cannot_be_sent_is_refused_for_good() {
        let file = File::default();
        let mut office = file.office();
        for to in ["a@exmaple.com", "a@example.com.net", "example.com", ""] {
            let request = format!(r#"{{"key":"k","to":"{to}","subject":"s"}}"#);
            assert_eq!(office.answer(&request).unwrap(), Answer::NoSuchAddress, "{to}");
        }
        for rubbish in ["", "HELO", "{}", r#"{"key":"k","to":1,"subject":"s"}"#] {
            assert!(matches!(office.answer(rubbish).unwrap(), Answer::Bad { .. }), "{rubbish}");
        }
        assert_eq!(file.text(), "");
    }

    #[test]
    fn answers_read_as_promised() {
        let text = |answer: Answer| serde_json::to_string(&answer).unwrap();
        assert_eq!(text(Answer::Sent { mail: 17 }), r#"{"answer":"sent","mail":17}"#);
        assert_eq!(text(Answer::Busy), r#"{"answer":"busy"}"#);
        assert_eq!(text(Answer::Later { after_ms: 300 }), r#"{"answer":"later","after_ms":300}"#);
        assert_eq!(text(Answer::NoSuchAddress), r#"{"answer":"no_such_address"}"#);
    }
}
