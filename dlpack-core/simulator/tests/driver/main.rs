//! What the simulator says about programs of which we know what a real driver would do with them.

mod capture;
mod context;
mod entry;
mod memory;
mod oracles;
mod order;
mod refused;
#[path = "../simulator/mod.rs"]
mod simulator;
