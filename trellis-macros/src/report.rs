//! Every error of one expansion.
use std::fmt::Display;

use proc_macro2::{Span, TokenStream};
use quote::ToTokens;

/// The errors found so far. Stages report and go on; nothing gives up the whole contract.
#[derive(Default)]
pub(crate) struct Report(Vec<syn::Error>);

impl Report {
    /// An error at everything that `at` spans.
    pub(crate) fn error(&mut self, at: impl ToTokens, message: impl Display) {
        self.0.push(syn::Error::new_spanned(at, message));
    }

    /// An error at `span`.
    pub(crate) fn error_at(&mut self, span: Span, message: impl Display) {
        self.0.push(syn::Error::new(span, message));
    }

    pub(crate) fn push(&mut self, error: syn::Error) {
        self.0.push(error);
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Keep the value, or keep the error.
    pub(crate) fn ok<T>(&mut self, result: syn::Result<T>) -> Option<T> {
        result.map_err(|error| self.push(error)).ok()
    }

    /// All of it as one error.
    pub(crate) fn into_result(self) -> syn::Result<()> {
        let combined = self.0.into_iter().reduce(|mut all, error| {
            all.combine(error);
            all
        });
        combined.map_or(Ok(()), Err)
    }

    pub(crate) fn into_compile_errors(self) -> TokenStream {
        self.0.iter().map(syn::Error::to_compile_error).collect()
    }
}
