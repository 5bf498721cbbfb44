//! The rules over declarations.
use crate::model::Contract;
use crate::report::Report;

pub(crate) fn check(_contract: &mut Contract, _report: &mut Report) {}
