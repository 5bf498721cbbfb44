// Names of any depth nest, and different paths never share a type of the facade.
use trellis::{Contract, Event, Job};

#[trellis::contract(id = "acme.deep@v1")]
pub mod deep {
    #[event("top")]
    #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
    pub struct Top {}

    #[event("a.b.c.d.e.f", payload = Top)]
    pub struct Deepest;
    #[event("a.b_c.d", payload = Top)]
    pub struct One;
    #[event("a_b.c.d", payload = Top)]
    pub struct Other;
    #[event("a.b.x", payload = Top)]
    pub struct Later;
    #[event("root.top", payload = Top)]
    pub struct Root;

    // Beside the events, not among them.
    #[job("top.a", payload = Top)]
    pub struct TopJob;
    #[job("a.b", payload = Top)]
    pub struct Short;
    #[job("job.root.job", payload = Top)]
    pub struct JobRoot;
}

fn main() {
    let event = deep::EVENT;
    let _ = (event.top, event.a.b.c.d.e.f, event.a.b_c.d, event.a_b.c.d, event.a.b.x, event.root.top);
    assert_eq!(deep::Other::DECLARATION.name, "a_b.c.d");
    assert_eq!(deep::Contract::events().len(), 6);
    let job = deep::JOB;
    let _ = (job.top.a, job.a.b, job.job.root.job);
    assert_eq!(deep::JobRoot::DECLARATION.name, "job.root.job");
}
