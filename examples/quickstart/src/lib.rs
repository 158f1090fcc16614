//! README and guide, so that `cargo test` runs their code; the demonstration itself is the binary beside it.
#![forbid(unsafe_code)]

/// A page, by its place in the checkout.
macro_rules! pages {
    ($($name:ident = $path:literal;)*) => {$(
        #[cfg(doctest)]
        #[doc = include_str!(concat!("../../../", $path))]
        struct $name;
    )*};
}

pages! {
    Readme = "README.md";
    Start = "guide/src/start.md";
    Shapes = "guide/src/shapes.md";
    WithoutPython = "guide/src/without-python.md";
    Buffers = "guide/src/buffers.md";
    View = "guide/src/view.md";
}
