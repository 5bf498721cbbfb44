//! Jobs from creation to end, whatever happens to either side.
mod observe;
mod odd;
mod recover;
mod refs;
mod stage;
mod submission;
mod survive;
mod tries;
