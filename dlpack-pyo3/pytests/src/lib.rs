//! `dlpack_probe`: classes for the tests in `tests/`, each of them ordinary or hostile in one respect.

mod alive;
mod allocator;
mod annotated;
mod buffered;
mod campaign;
mod differential;
mod elsewhere;
mod exclusive;
mod functions;
mod generic;
mod greedy;
#[cfg(feature = "own-abi")]
mod hooks;
mod kept_views;
mod lent_memory;
mod libraries;
mod life;
mod like;
mod memory;
mod mutable;
mod panics;
mod probe;
mod raw;
mod records;
mod results;
mod rust_numpy;
mod several;
mod slices;
mod states;
mod streams;
mod variants;
mod viewed_bytes;
mod views;

/// Classes and functions for the tests of dlpack-pyo3.
#[pyo3::pymodule(gil_used = false)]
mod dlpack_probe {
    #[pymodule_export]
    use crate::alive::{alive, drops, thread_id};
    #[pymodule_export]
    use crate::allocator::{allocated_in_rust, remove_nomemory_in_rust, set_nomemory_in_rust};
    #[pymodule_export]
    use crate::annotated::{
        Adopted, ByHand, Counted, Doubled, Draft, Guarded, Lent, LentOnRequest, LentPadded, Points,
        Rows, Still, Strict,
    };
    #[pymodule_export]
    use crate::buffered::{Buffered, Own};
    #[pymodule_export]
    use crate::campaign::{forge_capsules, forge_prototypes, import_into, numpy_over};
    #[pymodule_export]
    use crate::differential::differential;
    #[pymodule_export]
    use crate::elsewhere::Elsewhere;
    #[pymodule_export]
    use crate::exclusive::exclusive;
    #[pymodule_export]
    use crate::functions::{
        adopt, errors, first, has_class_text, inspect, keep, let_go, let_go_later, look, refuse,
        take, take_points, text,
    };
    #[pymodule_export]
    use crate::generic::{Floats, Ints};
    #[pymodule_export]
    use crate::greedy::Greedy;
    #[cfg(feature = "own-abi")]
    #[pymodule_export]
    use crate::hooks::{
        Hooked, HookedAlone, HookedByHand, HookedOwner, HookedQueue, HookedType, HookedVia,
        HookedWayBack, arm, blow_up, hooks, panic_in_update, thrown, way_back,
    };
    #[pymodule_export]
    use crate::kept_views::{
        keep_view, kinds_of_views, make_view, release_views, release_views_later,
    };
    #[pymodule_export]
    use crate::lent_memory::{Locked, Photo, Promised};
    #[pymodule_export]
    use crate::libraries::libraries;
    #[pymodule_export]
    use crate::life::{
        Canvas, Channel, ColumnMajor, Gauge, Measure, Measured, Picture, Plate, PointGrid,
        Settings, homeless,
    };
    #[pymodule_export]
    use crate::like::like;
    #[pymodule_export]
    use crate::mutable::{Bent, BentAlone, Changing, Exclusive, Mutable, Open};
    #[pymodule_export]
    use crate::panics::{PanicByHand, PanicInDescribe, PanicInDrop, PanicInOwner, Reentrant};
    #[pymodule_export]
    use crate::probe::{Probe, WProbe};
    #[pymodule_export]
    use crate::raw::{loose, status_of_export, status_of_import};
    #[pymodule_export]
    use crate::records::{
        Described, KeptRecords, Mixed, Tape, hidden_records, on_records, record_layouts,
        wide_records,
    };
    #[pymodule_export]
    use crate::results::{adopted_numpy, computed, inline, matrix, ramp, slotted, to_numpy};
    #[pymodule_export]
    use crate::rust_numpy::{evaluate, rust_ext};
    #[pymodule_export]
    use crate::several::{
        Arena, Base, Batch, Copying, Derived, Foreigner, Ledger, Owned, Simulation, Tables,
        create_hidden_class, getter_hides_tensor,
    };
    #[pymodule_export]
    use crate::slices::slices;
    #[pymodule_export]
    use crate::states::states;
    #[pymodule_export]
    use crate::streams::{
        Handed, Hasty, LentQueued, Pair, Patient, Queued, Sealed, Unsaid, Wrapped,
        collect_and_wait, collect_in_background, collector, release_captured, spare_events,
    };
    #[pymodule_export]
    use crate::variants::{Audio, Kind, Raw};
    #[pymodule_export]
    use crate::viewed_bytes::{
        Titled, bytes_of, copy_bytes, give_view, give_views, packet, reverse_bytes,
    };
    #[pymodule_export]
    use crate::views::views;
    #[pymodule_export]
    use dlpack_pyo3::Tensor;
    #[pymodule_export]
    use dlpack_pyo3::functions::{captured, collect};
}

/// A module with a single class and without `Tensor`. Its tests load it without [`dlpack_probe`].
#[pyo3::pymodule(gil_used = false)]
mod dlpack_one_class {
    #[pymodule_export]
    use crate::probe::Probe;
}
