//! contract layer
