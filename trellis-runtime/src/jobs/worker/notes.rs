//! What a handler has told and the log does not have yet: bounded, and told in order.
use trellis::{LogLevel, Progress, WaitTarget};

use crate::jobs::decide::cut;
use crate::jobs::event::{Entry, LogEntry, WaitEdge};

/// Log lines that wait to be stored, and their bytes: JSON writes a byte in six at most, so that
/// they fit in a message of the usual size.
const MAX_LINES: usize = 1000;
const MAX_BYTES: usize = 128 << 10;
/// Waits that are told of at once.
const MAX_WAITS: usize = 100;

/// What waits to be stored.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    progress: Option<Progress>,
    lines: Vec<LogEntry>,
    bytes: usize,
    left_out: usize,
    /// All that the job waits for: those that are stored are told again, since old observations go.
    waits: Vec<Wait>,
    resumed: Vec<String>,
}

#[derive(Debug, Clone)]
struct Wait {
    edge: WaitEdge,
    told: bool,
}

impl Notes {
    pub(crate) fn progress(&mut self, mut progress: Progress) {
        shorten(&mut progress.step);
        shorten(&mut progress.message);
        self.progress = Some(progress);
    }

    pub(crate) fn line(&mut self, timestamp: String, level: LogLevel, message: &str) {
        self.keep(LogEntry { timestamp, level, message: cut(message) });
    }

    fn keep(&mut self, line: LogEntry) {
        let bytes = self.bytes + line.message.len();
        if self.lines.len() < MAX_LINES && bytes <= MAX_BYTES {
            self.bytes = bytes;
            self.lines.push(line);
        } else {
            self.left_out += 1;
        }
    }

    pub(crate) fn waiting(&mut self, id: String, mut target: WaitTarget, started_at: String) {
        if self.waits.len() < MAX_WAITS {
            for text in [&mut target.service, &mut target.name, &mut target.id] {
                shorten(text);
            }
            self.waits.push(Wait { edge: WaitEdge { id, target, started_at }, told: false });
        }
    }

    pub(crate) fn resumed(&mut self, id: &str) {
        let Some(at) = self.waits.iter().position(|wait| wait.edge.id == id) else { return };
        // One that nobody has seen yet need not be told of at all.
        let wait = self.waits.remove(at);
        if wait.told {
            self.resumed.push(wait.edge.id);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        let Self { progress, lines, left_out, waits, resumed, bytes: _ } = self;
        let nothing = progress.is_none() && lines.is_empty() && *left_out == 0 && resumed.is_empty();
        nothing && waits.iter().all(|wait| wait.told)
    }

    /// Everything, to be stored. What the job waits for stays.
    pub(crate) fn take(&mut self) -> Self {
        let waits = self.waits.iter().map(|wait| Wait { told: true, ..wait.clone() }).collect();
        std::mem::replace(self, Self { waits, ..Self::default() })
    }

    /// What was taken and could not be stored comes before what was told since.
    pub(crate) fn put_back(&mut self, earlier: Self) {
        let later = std::mem::take(self);
        let untold: Vec<String> =
            earlier.waits.iter().filter(|wait| !wait.told).map(|wait| wait.edge.id.clone()).collect();
        let progress = later.progress.or(earlier.progress.clone());
        *self = Self { progress, waits: later.waits, ..earlier };
        self.left_out += later.left_out;
        for line in later.lines {
            self.keep(line);
        }
        for wait in &mut self.waits {
            wait.told &= !untold.contains(&wait.edge.id);
        }
        self.resumed.extend(later.resumed);
    }

    /// Say it in `entry`, which is written at `now`.
    pub(crate) fn write(&self, entry: &mut Entry<'_>, now: impl Fn() -> String) {
        entry.progress.clone_from(&self.progress);
        entry.logs.clone_from(&self.lines);
        if self.left_out > 0 {
            let message = format!("{} lines were left out: too many at once", self.left_out);
            entry.logs.push(LogEntry { timestamp: now(), level: LogLevel::Warn, message });
        }
        entry.waiting = self.waits.iter().map(|wait| wait.edge.clone()).collect();
        entry.resumed.clone_from(&self.resumed);
    }
}

/// Nobody reads more of it.
fn shorten(text: &mut Option<String>) {
    if let Some(text) = text {
        *text = cut(text);
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_WAITS, Notes};
    use crate::jobs::event::{Entry, EventType};
    use crate::jobs::state::JobState;
    use std::time::SystemTime;
    use trellis::{LogLevel, Progress, WaitTarget};

    fn written(notes: &Notes) -> Entry<'static> {
        let at = SystemTime::UNIX_EPOCH;
        let mut entry = Entry::bare("j", "a@v1", "a.b", EventType::Progress, JobState::Active, at);
        notes.write(&mut entry, || "now".to_owned());
        entry
    }

    fn say(notes: &mut Notes, message: &str) {
        notes.line("then".to_owned(), LogLevel::Info, message);
    }

    fn wait(notes: &mut Notes, id: &str) {
        notes.waiting(id.to_owned(), WaitTarget::external("x"), "then".to_owned());
    }

    fn lines(entry: &Entry<'_>) -> Vec<String> {
        entry.logs.iter().map(|line| line.message.clone()).collect()
    }

    fn waits(entry: &Entry<'_>) -> Vec<String> {
        entry.waiting.iter().map(|edge| edge.id.clone()).collect()
    }

    #[test]
    fn what_was_not_stored_comes_first_and_the_latest_progress_wins() {
        let mut notes = Notes::default();
        say(&mut notes, "1");
        notes.progress(Progress::of(1, 3));
        wait(&mut notes, "a");
        let taken = notes.take();
        assert!(notes.is_empty() && !taken.is_empty());
        say(&mut notes, "2");
        wait(&mut notes, "b");
        notes.put_back(taken);
        let entry = written(&notes);
        assert_eq!(
            (lines(&entry), waits(&entry)),
            (vec!["1".to_owned(), "2".into()], vec!["a".to_owned(), "b".into()])
        );
        assert_eq!(entry.progress, Some(Progress::of(1, 3)));
        let taken = notes.take();
        notes.progress(Progress::of(2, 3));
        notes.put_back(taken);
        assert_eq!(written(&notes).progress, Some(Progress::of(2, 3)));
    }

    #[test]
    fn a_wait_is_told_again_until_it_is_over() {
        let mut notes = Notes::default();
        wait(&mut notes, "a");
        assert_eq!(waits(&written(&notes.take())), ["a"]);
        assert!(notes.is_empty(), "nothing new");
        say(&mut notes, "on the way");
        assert_eq!(waits(&written(&notes.take())), ["a"]);
        // The storage of something else fails.
        say(&mut notes, "on the way");
        let taken = notes.take();
        notes.put_back(taken);
        notes.resumed("a");
        let entry = written(&notes.take());
        assert_eq!((waits(&entry).len(), entry.resumed), (0, vec!["a".to_owned()]));
        assert!(notes.is_empty());
    }

    #[test]
    fn a_wait_that_was_never_stored_is_not_told_of() {
        let mut notes = Notes::default();
        wait(&mut notes, "a");
        notes.resumed("a");
        assert!(notes.is_empty());
        // Taken, but not stored.
        wait(&mut notes, "b");
        let taken = notes.take();
        notes.put_back(taken);
        notes.resumed("b");
        assert!(notes.is_empty());
        // It was over before its storage failed.
        wait(&mut notes, "c");
        let taken = notes.take();
        notes.resumed("c");
        notes.put_back(taken);
        assert_eq!(waits(&written(&notes)), [""; 0]);
    }

    #[test]
    fn everything_is_bounded_and_what_is_left_out_is_counted() {
        let mut notes = Notes::default();
        for _ in 0..3000 {
            say(&mut notes, &"\u{1}".repeat(50_000));
            notes.progress(Progress::default().step("\u{1}".repeat(50_000)).message("\u{1}".repeat(50_000)));
        }
        for n in 0..2 * MAX_WAITS {
            wait(&mut notes, &n.to_string());
        }
        let taken = notes.take();
        say(&mut notes, &"\u{1}".repeat(50_000));
        notes.put_back(taken);
        let entry = written(&notes);
        assert!(entry.encode().len() < 900 << 10, "{}", entry.encode().len());
        let (kept, last) = (entry.logs.len() - 1, entry.logs.last().unwrap());
        assert!(kept > 10);
        assert_eq!(last.message, format!("{} lines were left out: too many at once", 3001 - kept));
        assert_eq!(entry.waiting.len(), MAX_WAITS);
    }
}
