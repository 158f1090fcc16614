//! Prints a tensor: its numbers, and which bytes of the memory behind it belong to which element.

/// The properties of a tensor of any producer.
pub(crate) struct Facts {
    pub(crate) shape: Vec<i64>,
    pub(crate) strides: Vec<i64>,
    pub(crate) dtype: String,
    pub(crate) device: String,
    pub(crate) address: usize,
    pub(crate) itemsize: usize,
    pub(crate) read_only: bool,
}

/// `Descriptor` and `TensorRef` answer to the same names, without a trait.
macro_rules! facts {
    ($tensor:expr, $item:ty) => {{
        let tensor = &$tensor;
        crate::show::Facts {
            shape: tensor.shape().to_vec(),
            strides: tensor.strides().to_vec(),
            dtype: tensor.dtype().to_string(),
            device: tensor.device().to_string(),
            address: tensor.as_ptr().addr(),
            itemsize: size_of::<$item>(),
            read_only: tensor.is_read_only(),
        }
    }};
}
pub(crate) use facts;

/// Prints the numbers; `owned_at` is where the elements lay before the export.
pub(crate) fn numbers(name: &str, facts: &Facts, owned_at: usize) {
    println!("{name}");
    println!("  shape    {:?}", facts.shape);
    println!("  strides  {:?}  (elements)", facts.strides);
    println!("  dtype    {}", facts.dtype);
    println!("  device   {}", facts.device);
    println!(
        "  access   {}",
        if facts.read_only {
            "read-only"
        } else {
            "writable"
        }
    );
    match facts.address.checked_sub(owned_at) {
        Some(0) => println!(
            "  pointer  {:#x}, where the elements lay before",
            facts.address
        ),
        Some(bytes) => println!(
            "  pointer  {:#x}, {bytes} bytes into the memory",
            facts.address
        ),
        None => println!("  pointer  {:#x}, a copy", facts.address),
    }
}

/// Prints the memory from `start` on, `width` items a line: the index of the element that lies there, or a dot.
pub(crate) fn picture(facts: &Facts, start: usize, items: usize, width: usize) {
    let labels = labels(facts, start, items);
    let cell = labels.iter().map(String::len).max().unwrap_or(0);
    let bytes = match facts.itemsize {
        1 => "a byte".to_owned(),
        bytes => format!("{bytes} bytes"),
    };
    println!("  memory   a cell is {bytes}, a dot is not part of the tensor");
    for (row, line) in labels.chunks(width).enumerate() {
        let cells: Vec<String> = line.iter().map(|label| format!("{label:^cell$}")).collect();
        println!(
            "  {:>5}    |{}|",
            row * width * facts.itemsize,
            cells.join("|")
        );
    }
}

/// For each item of the memory the index of its element, such as `1,2`.
pub(crate) fn labels(facts: &Facts, start: usize, items: usize) -> Vec<String> {
    let mut labels = vec![".".to_owned(); items];
    let first = (facts.address - start) / facts.itemsize;
    let count: i64 = facts.shape.iter().product();
    let mut index = vec![0_i64; facts.shape.len()];
    for _ in 0..count {
        let offset: i64 = index
            .iter()
            .zip(&facts.strides)
            .map(|(at, stride)| at * stride)
            .sum();
        let item = first.checked_add_signed(isize::try_from(offset).expect("it lies in memory"));
        let label: Vec<String> = index.iter().map(i64::to_string).collect();
        labels[item.expect("a tensor stays inside its memory")] = label.join(",");
        for (at, extent) in index.iter_mut().zip(&facts.shape).rev() {
            *at += 1;
            if *at < *extent {
                break;
            }
            *at = 0;
        }
    }
    labels
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transposed_view_is_labelled_where_it_lies() {
        let facts = Facts {
            shape: vec![2, 2],
            strides: vec![1, 3],
            dtype: "float32".into(),
            device: "cpu".into(),
            address: 104,
            itemsize: 4,
            read_only: true,
        };
        assert_eq!(
            labels(&facts, 100, 6),
            [".", "0,0", "1,0", ".", "0,1", "1,1"]
        );
    }
}
