//! The rules over declarations. What breaks one is reported; it stays in the expansion as far as it
//! can, so that what names it elsewhere does not become a second error.
mod case;
mod fields;
mod group;
mod job;
mod names;
mod paths;
mod reserved;
mod scope;
mod serde;
mod shape;

use proc_macro2::Span;
use syn::ext::IdentExt;

use crate::kind::Facade;
use crate::model::Contract;
use crate::report::Report;

pub(crate) fn check(contract: &mut Contract, report: &mut Report) {
    identity(contract, report);
    contract.taken = reserved::taken(&contract.items, report);
    let events = contract.events.iter_mut().map(|event| &mut event.declared);
    paths::check(&Facade::EVENT, events.collect(), report);
    let jobs = contract.jobs.iter_mut().map(|job| &mut job.declared);
    paths::check(&Facade::JOB, jobs.collect(), report);
    for event in &contract.events {
        fields::check(event, &contract.items, report);
    }
    for job in &mut contract.jobs {
        job::check(job, report);
    }
    group::check(contract, report);
}

fn identity(contract: &Contract, report: &mut Report) {
    let args = &contract.args;
    if args.id_is_missing {
        let module = contract.module.ident.unraw().to_string();
        let example = names::suggest(&module).unwrap_or_else(|| "orders".to_owned());
        let message = format!("`id` is missing: `#[trellis::contract(id = \"acme.{example}@v1\")]`");
        report.error_at(Span::call_site(), message);
    }
    if let Some(id) = &args.id
        && let Err(message) = names::identity(&id.value())
    {
        report.error(id, message);
    }
}
