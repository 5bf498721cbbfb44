//! What the compiler says to users of the macro.
