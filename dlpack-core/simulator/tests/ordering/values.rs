//! The contents of copies: for every layout, the values whose writes were still pending.

use std::sync::Arc;

use dlpack_core::{DLPack, Descriptor, Device, Error, ExportRequest, Loan, Parts};

use crate::memory::{BYTES, Blocks, Log, Owner, World};
use crate::simulator::{ALLOCATIONS, Api, BOTH};
use crate::tensors::{device_memory, number, request_on, written};

/// A part of an owner's memory, with strides.
struct Strided {
    owner: Owner,
    shape: Vec<i64>,
    strides: Vec<i64>,
    offset: i64,
}

impl DLPack for Strided {
    #[expect(unsafe_code, reason = "lends memory by its address")]
    fn describe(&self) -> Result<Descriptor<'_>, Error> {
        let start = core::ptr::with_exposed_provenance_mut::<u16>(self.owner.address);
        // SAFETY: the bytes are allocated, and are freed with the owner.
        let loan = unsafe { Loan::from_raw_parts_mut(start, BYTES / 2, self.owner.kind.device()) };
        Parts::new()
            .shape(&self.shape)
            .strides(&self.strides)
            .offset(self.offset)
            .stream(self.owner.named_stream.expect("it names a stream"))
            .describe(loan)
    }
}

/// Shape, strides, offset, and the elements in row-major order, over the numbers from 0.
type Layout = (&'static [i64], &'static [i64], i64, &'static [u16]);

const LAYOUTS: [Layout; 7] = [
    (&[4], &[1], 0, &[0, 1, 2, 3]),
    (&[4], &[-2], 9, &[9, 7, 5, 3]),
    (&[2, 3], &[1, 2], 0, &[0, 2, 4, 1, 3, 5]),
    (&[2, 3], &[0, 5], 1, &[1, 6, 11, 1, 6, 11]),
    (&[2, 2], &[-8, 3], 10, &[10, 13, 2, 5]),
    (&[], &[], 7, &[7]),
    (&[3, 0], &[1, 1], 4, &[]),
];

const TO_HOST: ExportRequest = ExportRequest {
    dl_device: Some(Device::CPU),
    ..ExportRequest::versioned()
};

impl Strided {
    /// A part of new memory, to which the numbers from 0 are still being written.
    fn of_numbers(
        world: &World,
        api: Api,
        (shape, strides, offset, _): Layout,
    ) -> (Self, Arc<Log>) {
        let lane = world.lane(world.first, Blocks::No);
        let (owner, log) = written(world, device_memory(api), lane);
        let count = u16::try_from(BYTES / 2).expect("a small number");
        let numbers: Vec<u8> = (0..count).flat_map(u16::to_ne_bytes).collect();
        let written = world
            .driver
            .copy_to_device(owner.address, &numbers, lane.handle);
        assert_eq!(written, Ok(()));
        let tensor = Self {
            owner,
            shape: shape.to_vec(),
            strides: strides.to_vec(),
            offset,
        };
        (tensor, log)
    }
}

#[test]
fn a_copy_to_the_host_has_the_values_that_were_still_being_written() {
    for api in BOTH {
        for layout in LAYOUTS {
            let (shape, _, _, expected) = layout;
            let world = World::new(api);
            let (tensor, log) = Strided::of_numbers(&world, api, layout);
            let copy = tensor.into_dlpack_with(&TO_HOST).unwrap();
            let view = copy.view();
            assert_eq!((view.device(), view.shape()), (Device::CPU, shape));
            assert!(view.is_copied() && view.is_contiguous());
            assert_eq!(view.to_vec::<u16>().unwrap(), expected, "{shape:?}");
            if !expected.is_empty() {
                let address = view.as_ptr().expose_provenance();
                world.sim.host_read(address, 2 * expected.len());
            }
            assert_eq!(log.drops(), 1);
            world.sim.assert_clean();
        }
    }
}

#[test]
fn a_copy_on_the_device_has_the_values_and_the_strides() {
    for api in BOTH {
        for layout in LAYOUTS {
            let (shape, _, _, expected) = layout;
            let world = World::new(api);
            let consumer = world.lane(world.first, Blocks::No);
            let (tensor, log) = Strided::of_numbers(&world, api, layout);
            let request = ExportRequest {
                copy: Some(true),
                ..request_on(number(consumer))
            };
            let copy = tensor.into_dlpack_with(&request).unwrap();
            // LAY-16, FLG-02: the copy repeats items as the original does, so it may be written only if no item is repeated.
            let repeats = copy.view().strides().contains(&0);
            assert!(copy.view().is_copied());
            assert_eq!(copy.view().is_read_only(), repeats, "{shape:?}");
            assert_eq!(copy.view().device(), device_memory(api).device());
            assert_eq!(copy.view().shape(), shape);
            // Read by a copy of the copy.
            world.driver.synchronize_stream(consumer.handle).unwrap();
            let host = copy.into_dlpack_with(&TO_HOST).unwrap();
            assert_eq!(host.view().to_vec::<u16>().unwrap(), expected, "{shape:?}");
            drop(host);
            assert_eq!(dlpack_core::stream::collect(), 0);
            assert_eq!(log.drops(), 1);
            world.sim.assert_clean();
            assert_eq!(world.sim.live(ALLOCATIONS), 0);
        }
    }
}

/// LAY-16, FLG-02: items that overlap also overlap in a copy on the device. A legacy consumer cannot be told that it must not write
/// them, so nothing is copied for it.
#[test]
fn overlapping_items_are_not_copied_on_the_device_for_a_legacy_consumer() {
    for api in BOTH {
        let world = World::new(api);
        let consumer = world.lane(world.first, Blocks::No);
        let (tensor, log) = Strided::of_numbers(&world, api, LAYOUTS[3]);
        let tensor = Arc::new(tensor);
        world.sim.forget_calls();
        for copy in [None, Some(true), Some(false)] {
            let request = ExportRequest {
                max_version: None,
                copy,
                ..request_on(number(consumer))
            };
            let refused = tensor.to_dlpack_with(&request).unwrap_err();
            assert_eq!(refused, Error::LegacyReadOnly);
        }
        let names = world.sim.call_names();
        assert!(!names.iter().any(|it| it.contains("Memcpy")), "{names:?}");
        // On the host a copy has bytes of its own for each item.
        let host = ExportRequest {
            max_version: None,
            ..TO_HOST
        };
        let copy = tensor.to_dlpack_with(&host).unwrap();
        assert!(copy.view().is_contiguous());
        drop((copy, tensor));
        assert_eq!(dlpack_core::stream::collect(), 0);
        assert_eq!(log.drops(), 1);
        world.sim.assert_clean();
    }
}
