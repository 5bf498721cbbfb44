//! Live progress: bars on a terminal, plain lines elsewhere.
use std::cell::Cell;
use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use orders_demo::{Counts, Expected};
use testbed::Stopwatch;

/// How often a plain line is printed.
const PLAIN_EVERY: Duration = Duration::from_secs(1);

/// Shows how far the services are.
pub(crate) struct Progress {
    started: Stopwatch,
    bars: Option<Bars>,
    next_line: Cell<Duration>,
}

struct Bars {
    all: MultiProgress,
    placing: ProgressBar,
    handling: ProgressBar,
    mailing: ProgressBar,
}

impl Progress {
    pub(crate) fn new(expected: &Expected) -> Self {
        let bars = std::io::stderr().is_terminal().then(|| Bars::new(expected));
        Self { started: Stopwatch::start(), bars, next_line: Cell::default() }
    }

    /// Something happened that is to be remembered.
    pub(crate) fn say(&self, what: &str) {
        let line = format!("{:>6.1} s  {what}", self.started.elapsed().as_secs_f64());
        match &self.bars {
            Some(bars) => bars.all.suspend(|| println!("{line}")),
            None => println!("{line}"),
        }
    }

    pub(crate) fn show(&self, counts: &Counts) {
        let Some(bars) = &self.bars else {
            if self.started.elapsed() >= self.next_line.get() {
                self.next_line.set(self.started.elapsed() + PLAIN_EVERY);
                self.say(&sentence(counts));
            }
            return;
        };
        bars.placing.set_position(counts.lines());
        bars.placing.set_message(format!("{} placed, {} refused", counts.placed, counts.refused));
        bars.handling.set_position(counts.handled);
        bars.handling.set_message(format!("{} in the outbox", counts.outbox));
        bars.mailing.set_position(counts.ended());
        bars.mailing
            .set_message(format!("{} receipts sent, {} without an address", counts.sent, counts.unsent));
    }

    pub(crate) fn finish(&self, counts: &Counts) {
        if let Some(bars) = &self.bars {
            bars.placing.finish_and_clear();
            bars.handling.finish_and_clear();
            bars.mailing.finish_and_clear();
        }
        self.say(&sentence(counts));
    }
}

impl Bars {
    fn new(expected: &Expected) -> Self {
        let all = MultiProgress::new();
        let bar = |length: usize, name: &'static str| {
            let style = ProgressStyle::with_template("{prefix:>9} [{bar:40}] {pos:>5}/{len} {msg}");
            let bar = all.add(ProgressBar::new(length as u64)).with_prefix(name);
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar
        };
        let (lines, orders) = (expected.lines, expected.placed.len());
        let (placing, handling, mailing) =
            (bar(lines, "placing"), bar(orders, "handling"), bar(orders, "mailing"));
        Self { all, placing, handling, mailing }
    }
}

fn sentence(counts: &Counts) -> String {
    let Counts { placed, refused, outbox, handled, sent, unsent } = counts;
    format!(
        "{placed:>5} placed, {refused:>3} refused, {outbox:>3} in the outbox, {handled:>5} handled, \
         {sent:>5} receipts sent, {unsent:>3} without an address"
    )
}
