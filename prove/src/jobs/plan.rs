//! Which jobs there are and what happens to the processes: everything that chance decides, from one seed.
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::worker::work::Task;

/// Jobs of a proof, and of a slice.
const JOBS: u64 = 20_000;
const JOBS_OF_A_SLICE: u64 = 1_500;
/// Moves of a proof, and of a slice.
const MOVES: usize = 40;
const MOVES_OF_A_SLICE: usize = 5;
/// The time between two moves.
const BETWEEN_MS: std::ops::Range<u64> = 100..1500;

/// What happens, in order.
pub(crate) struct Plan {
    pub(crate) tasks: Vec<Task>,
    pub(crate) moves: Vec<Move>,
}

/// Something that happens to one of the processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Move {
    /// The time since the last one.
    pub(crate) after: Duration,
    pub(crate) what: What,
}

/// What happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    /// SIGKILL of this worker; it is started again at once.
    Kill(usize),
    /// SIGSTOP of this worker past its ack wait, then SIGCONT.
    Freeze(usize),
    /// SIGTERM of this worker, and a new one when it has ended.
    Stop(usize),
    /// SIGKILL of the NATS server; it is started again at once.
    KillServer,
}

impl Plan {
    pub(crate) fn new(seed: u64, slice: bool) -> Self {
        let mut dice = StdRng::seed_from_u64(seed);
        let (jobs, moves) = if slice { (JOBS_OF_A_SLICE, MOVES_OF_A_SLICE) } else { (JOBS, MOVES) };
        let mut tasks: Vec<Task> = (0..jobs).map(|number| task(number, &mut dice)).collect();
        if let Some(killer) = tasks.get_mut(7) {
            *killer = Task { kills: true, ..killer.clone() };
        }
        let moves = (0..moves).map(|_| one_move(&mut dice)).collect();
        Self { tasks, moves }
    }
}

fn task(number: u64, dice: &mut StdRng) -> Task {
    let errors = match dice.random_range(0..100) {
        0..10 => 1,
        10..13 => 2,
        _ => 0,
    };
    let pause = match dice.random_range(0..100) {
        0 => dice.random_range(500..4000),
        1..30 => dice.random_range(0..60),
        _ => 0,
    };
    Task { number, errors, fails: dice.random_ratio(1, 50), kills: false, pauses_ms: vec![pause] }
}

fn one_move(dice: &mut StdRng) -> Move {
    let worker = dice.random_range(0..2);
    let what = match dice.random_range(0..100) {
        0..55 => What::Kill(worker),
        55..75 => What::Freeze(worker),
        75..90 => What::Stop(worker),
        _ => What::KillServer,
    };
    Move { after: Duration::from_millis(dice.random_range(BETWEEN_MS)), what }
}

#[cfg(test)]
mod tests {
    use super::{Plan, What};

    #[test]
    fn a_seed_repeats_its_plan_and_all_moves_occur() {
        let moves = |seed| Plan::new(seed, false).moves;
        assert_eq!(moves(7), moves(7));
        assert_ne!(moves(7), moves(8));
        let many: Vec<What> = (0..20).flat_map(moves).map(|it| it.what).collect();
        for what in [What::Kill(0), What::Kill(1), What::Freeze(0), What::Stop(1), What::KillServer] {
            assert!(many.contains(&what), "{what:?}");
        }
    }
}
