//! The simulator, with programs whose result on a real driver is known.

mod capture;
mod context;
mod entry;
mod memory;
mod oracles;
mod order;
mod refused;
#[path = "../simulator/mod.rs"]
mod simulator;
