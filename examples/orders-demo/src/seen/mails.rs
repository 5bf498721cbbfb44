//! What the mail server has written down.
use serde::Deserialize;

use crate::Error;

/// All of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mails {
    /// Every mail that was taken.
    pub taken: Vec<Mail>,
    /// How often one came again that had been taken before.
    pub repeats: usize,
}

/// A mail that was taken.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Mail {
    /// The mail server's number of it.
    pub mail: u64,
    /// The id of the job that sent it.
    pub key: String,
    /// Where to.
    pub to: String,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Line {
    Taken(Mail),
    Repeat {
        #[serde(rename = "repeat")]
        _mail: u64,
    },
}

pub(super) fn read(file: &str) -> Result<Mails, Error> {
    let mut mails = Mails::default();
    for line in file.lines() {
        match serde_json::from_str(line)? {
            Line::Taken(mail) => mails.taken.push(mail),
            Line::Repeat { .. } => mails.repeats += 1,
        }
    }
    Ok(mails)
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn a_repeat_is_no_mail() {
        let mails =
            read("{\"mail\":1,\"key\":\"k\",\"to\":\"a\",\"subject\":\"s\"}\n{\"repeat\":1}\n").unwrap();
        assert_eq!((mails.taken.len(), mails.repeats), (1, 1));
        assert!(read("{}").is_err());
    }
}
