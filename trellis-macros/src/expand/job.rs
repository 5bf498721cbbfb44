//! One `impl Job` per job.
use std::time::Duration;

use proc_macro2::{Literal, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::Type;

use super::private;
use super::unfinished::stand_ins;
use crate::model::{Contract, Given, Job, Retry};

// Spanned at the type, so that what the compiler says of the impl, it says there.
pub(super) fn implement(contract: &Contract, job: &Job) -> TokenStream {
    let private = private(&contract.args.krate);
    let id = contract.args.id();
    let (ident, name, cfgs) = (&job.declared.ident, job.declared.name(), &job.declared.cfgs);
    let payload = job.payload.of(&job.declared);
    let or = |ty: &Option<Type>, default| ty.as_ref().map_or(default, ToTokens::to_token_stream);
    let (result, update) = (or(&job.result, quote!(())), or(&job.update, quote!(#private::NoUpdate)));
    let retry = retry(&job.retry, &private);
    let deadline = job.deadline.as_ref().map(|deadline| {
        let duration = duration(deadline, &private);
        quote!(.deadline(#duration))
    });
    let stand_ins = stand_ins(&job.declared, &job.payload, &private);
    let implementation = quote_spanned! {ident.span()=>
        #(#cfgs)*
        #[automatically_derived]
        #[allow(deprecated)]
        impl #private::Job for #ident {
            type Payload = #payload;
            type Result = #result;
            type Update = #update;
            const DECLARATION: #private::JobDeclaration =
                #private::JobDeclaration::new(#id, #name) #retry #deadline;
        }
    };
    quote!(#stand_ins #implementation)
}

fn retry(retry: &Retry, private: &TokenStream) -> Option<TokenStream> {
    let default = quote!(#private::Retry::new());
    let tries = retry.tries.as_ref().map(|tries| {
        let number = Literal::u64_unsuffixed(tries.value);
        quote!(.tries(#number))
    });
    let delay = |given: &Option<Given<Duration>>| given.as_ref().map(|given| duration(given, private));
    let delays = match (delay(&retry.first), delay(&retry.longest)) {
        (None, None) => None,
        (first, longest) => {
            let first = first.unwrap_or_else(|| quote!(#default.first));
            let longest = longest.unwrap_or_else(|| quote!(#default.longest));
            Some(quote!(.delays(#first, #longest)))
        }
    };
    let explicit = retry.explicit.then(|| quote!(.explicit()));
    let differs = tries.is_some() || delays.is_some() || explicit.is_some();
    differs.then(|| quote!(.retry(#default #tries #delays #explicit)))
}

fn duration(given: &Given<Duration>, private: &TokenStream) -> TokenStream {
    let (seconds, milliseconds) = (given.value.as_secs(), given.value.subsec_millis());
    let duration = quote!(#private::core::time::Duration);
    if milliseconds == 0 {
        let seconds = Literal::u64_unsuffixed(seconds);
        return quote!(#duration::from_secs(#seconds));
    }
    let milliseconds = Literal::u64_unsuffixed(seconds * 1000 + u64::from(milliseconds));
    quote!(#duration::from_millis(#milliseconds))
}
