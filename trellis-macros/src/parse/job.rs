//! `#[job("orders.send_receipt", payload = .., result = .., update = .., retry(..), deadline = "10m")]`
use syn::Attribute;

use super::piece::Head;
use super::{declared, duration, options, retry};
use crate::kind::Kind;
use crate::model::{Job, Payload};
use crate::report::Report;

const OPTIONS: &str = "payload, result, update, retry, deadline";

pub(super) fn read(attr: &Attribute, head: &Head, report: &mut Report) -> Option<Job> {
    let (mut payload, mut result, mut update) = (None, None, None);
    let (mut retry, mut deadline) = (None, None);
    let name = options::read(Kind::Job, attr, report, |input| {
        let key = options::key(input, OPTIONS)?;
        match key.to_string().as_str() {
            "payload" => options::once(&mut payload, &key, options::ty(input, &key)?),
            "result" => options::once(&mut result, &key, options::ty(input, &key)?),
            "update" => options::once(&mut update, &key, options::ty(input, &key)?),
            "retry" => retry::read(&mut retry, &key, input),
            "deadline" => options::once(&mut deadline, &key, duration::read(input, &key, "10m")?),
            _ => Err(options::unknown(&key, OPTIONS)),
        }
    });
    Some(Job {
        declared: declared(Kind::Job, name, head, report)?,
        payload: Payload { ty: payload, unfinished: Vec::new() },
        result,
        update,
        retry: retry.unwrap_or_default(),
        deadline,
    })
}
