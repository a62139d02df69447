//! End to end.
fn main(){}
