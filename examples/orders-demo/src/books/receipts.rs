//! The receipts: what their jobs, the database and the mail server say must agree.
use std::collections::{BTreeSet, HashMap};

use crate::books::Books;
use crate::expect::{Expected, Order};
use crate::seen::{Job, Mail, Receipt, Seen};

impl Books {
    pub(super) fn compare_receipts(&mut self, expected: &Expected, seen: &Seen) {
        let ended = |how: &str| seen.jobs.iter().filter(|job| job.ends == [how]).count();
        (self.completed, self.failed) = (ended("completed"), ended("failed"));
        self.other_jobs = seen.jobs.len() - self.completed - self.failed;
        self.tries = seen.jobs.iter().map(|job| job.tries).sum();
        self.repeats = seen.mails.repeats;

        let orders: HashMap<&str, &Order> =
            expected.placed.iter().map(|order| (order.order_id.as_str(), order)).collect();
        let rows: HashMap<&str, &Receipt> =
            seen.receipts.iter().map(|row| (row.job_id.as_str(), row)).collect();
        let mails: HashMap<&str, &Mail> =
            seen.mails.taken.iter().map(|mail| (mail.key.as_str(), mail)).collect();
        let (mut open, mut wrong_end, mut wrong) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for job in &seen.jobs {
            let id = job.order_id.as_str();
            let must_end = if expected.is_deliverable(id) { "completed" } else { "failed" };
            if job.ends.is_empty() {
                open.insert(id);
            } else if job.ends != [must_end] {
                wrong_end.insert(id);
            }
            let order_agrees = orders.get(id).is_some_and(|order| {
                expected.emails.get(id) == Some(&job.email) && order.total_cents == job.total_cents
            });
            if job.created != 1
                || !order_agrees
                || !agree(job, rows.get(job.id.as_str()), mails.get(job.id.as_str()))
            {
                wrong.insert(id);
            }
        }
        self.report("whose job has not ended", &open);
        self.report("whose job ended as it must not", &wrong_end);
        self.report("whose job, receipt and mail do not agree", &wrong);
    }
}

/// Whether a job, its row and its mail say the same. A mail that is lost or not to be there is counted elsewhere.
fn agree(job: &Job, row: Option<&&Receipt>, mail: Option<&&Mail>) -> bool {
    let number = mail.map(|mail| mail.mail);
    let row_agrees = |row: &&Receipt| {
        (&row.order_id, &row.email, row.total_cents) == (&job.order_id, &job.email, job.total_cents)
            && Some(row.mail) == number
    };
    job.mail == number && row.is_none_or(row_agrees) && mail.is_none_or(|mail| mail.to == job.email)
}
