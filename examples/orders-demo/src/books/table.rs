//! The books as they are printed.
use std::fmt;

use crate::books::Books;

/// The table.
impl fmt::Display for Books {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut row = |what: &str, count: u64| writeln!(f, "  {what:<32} {count:>8}");
        row("lines", self.lines as u64)?;
        row("placed", self.placed as u64)?;
        row("duplicates refused", self.duplicates_refused as u64)?;
        row("rejected", self.rejected.values().sum::<usize>() as u64)?;
        for (reason, count) in &self.rejected {
            row(&format!("  {reason}"), *count as u64)?;
        }
        row("events in the stream", self.events as u64)?;
        row("events handled", self.handled as u64)?;
        row("  stock reserved", self.reserved as u64)?;
        row("  not enough in stock", self.out_of_stock as u64)?;
        row("jobs of receipts", self.jobs as u64)?;
        row("  completed: the receipt is sent", self.completed as u64)?;
        row("  failed: no such address", self.failed as u64)?;
        row("  open, or ended otherwise", self.other_jobs as u64)?;
        row("  tries", self.tries)?;
        row("mails taken by the mail server", self.mails as u64)?;
        row("  taken before, not sent again", self.repeats as u64)?;
        row("lost", self.lost as u64)?;
        row("doubled", self.doubled as u64)?;
        row("out of order", self.out_of_order as u64)?;
        row("rows left in the outbox", self.outbox_rows)?;
        row("dead letters", self.dead_letters)?;
        for problem in &self.problems {
            writeln!(f, "  does not balance: {problem}")?;
        }
        Ok(())
    }
}
