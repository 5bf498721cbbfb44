//! The contest: ours, the raw loop and the peers, in turns.

use crate::Result;
use crate::case::{Case, rate};
use crate::jobs::ours::Ours;
use crate::jobs::peers::{NAMES, Peers};
use crate::jobs::raw::Raw;
use crate::jobs::{Backlog, Outcome, Queue, Sizes};
use crate::latencies::Latencies;
use crate::samples::Samples;
use crate::setting::Setting;

/// Jobs that are worked on at once. The last is as many as a queue likes, and what the peers, who
/// count them in ways of their own, are beside.
const IN_FLIGHT: [usize; 3] = [1, 16, 256];

pub(crate) struct Contest {
    ours: Ours,
    raw: Raw,
    peers: Peers,
    enqueue: Case,
    process: [Case; IN_FLIGHT.len()],
    p50: Case,
    p99: Case,
    /// Not beside the raw loop, but beside ours in an empty queue.
    beside: Vec<Case>,
    about_peers: Vec<(&'static str, String)>,
}

#[derive(Debug, Clone, Copy)]
enum Who {
    Ours,
    Raw,
}

impl Contest {
    pub(crate) fn new(ours: Ours, raw: Raw, peers: Peers) -> Self {
        Self {
            ours,
            raw,
            peers,
            enqueue: Case::new("jobs, enqueue", "jobs/s"),
            process: IN_FLIGHT.map(|many| Case::new(format!("jobs, process, {many} in flight"), "jobs/s")),
            p50: Case::new("jobs, idle pick-up, p50", "µs, less is better"),
            p99: Case::new("jobs, idle pick-up, p99", "µs, less is better"),
            beside: Vec::new(),
            about_peers: Vec::new(),
        }
    }

    /// One round; who goes first changes, since who goes second finds the machine warm.
    pub(crate) async fn round(&mut self, setting: &Setting, round: u32, sizes: Sizes) -> Result<()> {
        let turns = if round.is_multiple_of(2) { [Who::Ours, Who::Raw] } else { [Who::Raw, Who::Ours] };
        for (index, in_flight) in IN_FLIGHT.into_iter().enumerate() {
            let jobs = if in_flight == 1 { sizes.one_by_one } else { sizes.together };
            for who in turns {
                self.backlog(who, index, in_flight, jobs).await?;
            }
        }
        for who in turns {
            self.pick_up(who, sizes.samples).await?;
        }
        for peer in NAMES {
            self.peer(setting, peer, sizes)?;
        }
        Ok(())
    }

    /// Once, for it takes long: the pick-up of a fresh job beside many that wait for a retry much
    /// later, against the same in an empty queue.
    pub(crate) async fn beside_delayed(&mut self, sizes: Sizes) -> Result<()> {
        let Sizes { delayed, samples, .. } = sizes;
        let empty = self.ours.pick_up(samples).await?;
        let beside = self.ours.pick_up_beside(delayed, samples).await?;
        for percent in [50, 99] {
            let name = format!(
                "jobs, pick-up beside {delayed} delayed retries, p{percent} (raw: ours in an empty queue)"
            );
            let mut case = Case::new(name, "µs, less is better");
            case.ours.push(beside.percentile(percent));
            case.raw.push(empty.percentile(percent));
            self.beside.push(case);
        }
        Ok(())
    }

    pub(crate) fn outcome(self) -> Outcome {
        let cases = std::iter::once(self.enqueue).chain(self.process).chain([self.p50, self.p99]);
        Outcome { cases: cases.chain(self.beside).collect(), peers: self.about_peers }
    }

    async fn backlog(&mut self, who: Who, index: usize, in_flight: usize, jobs: u32) -> Result<()> {
        let Backlog { enqueued, done } = match who {
            Who::Ours => self.ours.backlog(jobs, in_flight).await?,
            Who::Raw => self.raw.backlog(jobs, in_flight).await?,
        };
        let (enqueued, done) = (rate(jobs, enqueued), rate(jobs, done));
        eprintln!(
            "{:<21} {in_flight:>3} in flight: {enqueued:>7.0} enqueued/s, {done:>6.0} done/s",
            who.name()
        );
        if let Some(case) = self.process.get_mut(index) {
            who.samples(case).push(done);
        }
        // One figure a round: that of the backlog that is worked off fastest.
        if Some(&in_flight) == IN_FLIGHT.last() {
            who.samples(&mut self.enqueue).push(enqueued);
        }
        Ok(())
    }

    async fn pick_up(&mut self, who: Who, samples: u32) -> Result<()> {
        let latencies: Latencies = match who {
            Who::Ours => self.ours.pick_up(samples).await?,
            Who::Raw => self.raw.pick_up(samples).await?,
        };
        let (p50, p99) = (latencies.percentile(50), latencies.percentile(99));
        eprintln!("{:<21} picked up: p50 {p50:.0} µs, p99 {p99:.0} µs", who.name());
        who.samples(&mut self.p50).push(p50);
        who.samples(&mut self.p99).push(p99);
        Ok(())
    }

    fn peer(&mut self, setting: &Setting, peer: &'static str, sizes: Sizes) -> Result<()> {
        let figures = self.peers.run(setting, peer, sizes.peers, sizes.samples)?;
        let (enqueued, done) = (figures.enqueue_per_s, figures.process_per_s);
        let (p50, p99) = (figures.pickup.p50_us, figures.pickup.p99_us);
        eprintln!(
            "{peer:<21} {enqueued:.0} enqueued/s, {done:.0} done/s, picked up: p50 {p50:.0} µs, p99 {p99:.0} µs"
        );
        let [.., most_in_flight] = &mut self.process;
        most_in_flight.push_other(peer, done);
        self.enqueue.push_other(peer, enqueued);
        self.p50.push_other(peer, p50);
        self.p99.push_other(peer, p99);
        if self.about_peers.iter().all(|(name, _)| *name != peer) {
            self.about_peers.push((peer, figures.about()));
        }
        Ok(())
    }
}

impl Who {
    fn name(self) -> &'static str {
        match self {
            Self::Ours => "ours",
            Self::Raw => "raw",
        }
    }

    fn samples(self, case: &mut Case) -> &mut Samples {
        match self {
            Self::Ours => &mut case.ours,
            Self::Raw => &mut case.raw,
        }
    }
}
