//! The rules over declarations. What breaks one is reported; it stays in the expansion as far as it
//! can, so that what names it elsewhere does not become a second error.
mod case;
mod fields;
mod group;
mod names;
mod paths;
mod reserved;
mod scope;
mod serde;
mod shape;

use proc_macro2::Span;

use crate::model::Contract;
use crate::report::Report;

pub(crate) fn check(contract: &mut Contract, report: &mut Report) {
    identity(contract, report);
    contract.taken = reserved::taken(&contract.items, report);
    paths::check(&mut contract.events, report);
    for event in &contract.events {
        fields::check(event, &contract.items, report);
    }
    group::check(&contract.groups, report);
}

fn identity(contract: &Contract, report: &mut Report) {
    let Some(id) = &contract.args.id else {
        let example =
            names::suggest(&contract.module.ident.to_string()).unwrap_or_else(|| "orders".to_owned());
        let message = format!("`id` is missing: `#[trellis::contract(id = \"acme.{example}@v1\")]`");
        return report.error_at(Span::call_site(), message);
    };
    if let Err(message) = names::identity(&id.value()) {
        report.error(id, message);
    }
}
