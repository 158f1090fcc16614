//! A tensor goes to C, which adds it up and gives it back; a tensor of C comes to Rust.

#[cfg(has_c)]
mod library;
#[cfg(has_c)]
mod round_trip;

#[cfg(has_c)]
fn main() -> Result<(), dlpack_core::Error> {
    round_trip::to_c_and_gone()?;
    round_trip::to_c_and_back()?;
    round_trip::from_c()
}

#[cfg(not(has_c))]
fn main() {
    println!("SKIPPED: there was no C compiler when this example was built");
}

#[cfg(all(test, has_c))]
mod tests {
    #[test]
    fn everything_it_shows_is_true() {
        super::main().unwrap();
    }
}
