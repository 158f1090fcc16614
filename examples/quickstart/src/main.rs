//! The demonstration: annotated structs become tensors, and what is printed is asserted.
#![forbid(unsafe_code)]

mod audio;
mod back;
mod cloud;
mod frame;
mod image;
mod live;
mod show;
mod wrapper;

use dlpack_core::Error;

fn main() -> Result<(), Error> {
    let parts: [fn() -> Result<(), Error>; 7] = [
        image::main,
        live::main,
        cloud::main,
        wrapper::main,
        audio::main,
        frame::main,
        back::main,
    ];
    for part in parts {
        println!();
        part()?;
    }
    println!("\nEverything above was asserted, and no element was copied before the last part.");
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn everything_it_shows_is_true() {
        super::main().unwrap();
    }
}
