//! Who is killed when: everything that chance decides, from one seed.
use std::time::Duration;

use orders_demo::{Kind, Role};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

/// Most kills come soon after the last one: while a process starts, and while rows of an earlier
/// victim are still leased.
const SOON_MS: u64 = 1500;
/// Some come so late that all leases of earlier victims are over.
const LATE_MS: std::ops::Range<u64> = 6000..9000;
/// How many of a hundred are late. A slice has no time for that.
const LATE_PERCENT: u32 = 20;
/// The pause after each line, drawn for each start: without one, many rows are under way at a kill;
/// with one, the outbox is empty now and then.
const PAUSES_MS: [u64; 3] = [0, 2, 10];

/// The kills, in order.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) kills: Vec<Kill>,
}

/// One kill.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Kill {
    pub(crate) victim: Role,
    /// The time since the last victim was started again.
    pub(crate) after: Duration,
    /// The pause after each line from then on.
    pub(crate) pause: Duration,
}

impl Plan {
    pub(crate) fn new(seed: u64, kind: Kind, kills: usize, slice: bool) -> Self {
        let mut dice = StdRng::seed_from_u64(seed ^ u64::from(kind == Kind::Postgres));
        let late_percent = if slice { 0 } else { LATE_PERCENT };
        let mut kill = || {
            let victim = Role::SERVICES.choose(&mut dice).copied().unwrap_or(Role::Placing);
            let late = dice.random_ratio(late_percent, 100);
            let ms = if late { dice.random_range(LATE_MS) } else { dice.random_range(0..SOON_MS) };
            let pause = PAUSES_MS.choose(&mut dice).copied().unwrap_or_default();
            Kill { victim, after: Duration::from_millis(ms), pause: Duration::from_millis(pause) }
        };
        Self { kills: (0..kills).map(|_| kill()).collect() }
    }

    /// How long all of it takes, restarts left out.
    pub(crate) fn duration(&self) -> Duration {
        self.kills.iter().map(|kill| kill.after).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_repeats_its_plan() {
        let plan = |seed, kind| Plan::new(seed, kind, 30, false);
        assert_eq!(plan(7, Kind::Sqlite), plan(7, Kind::Sqlite));
        assert_ne!(plan(7, Kind::Sqlite), plan(8, Kind::Sqlite));
        assert_ne!(plan(7, Kind::Sqlite), plan(7, Kind::Postgres));
    }

    #[test]
    fn all_services_are_victims_and_some_kills_are_late() {
        let plan = Plan::new(7, Kind::Sqlite, 1000, false);
        let count = |is: &dyn Fn(&&Kill) -> bool| plan.kills.iter().filter(is).count();
        for role in Role::SERVICES {
            assert!((250..420).contains(&count(&|kill| kill.victim == role)), "{role:?}");
        }
        assert!((120..280).contains(&count(&|kill| kill.after.as_secs() >= 6)));
    }

    #[test]
    fn a_slice_is_short() {
        assert!(Plan::new(7, Kind::Sqlite, 3, true).duration() <= Duration::from_millis(3 * SOON_MS));
    }
}
