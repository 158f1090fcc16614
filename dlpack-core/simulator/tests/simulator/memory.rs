//! The drivers' entry points for memory.

use super::{Answer, Driver, answer, library, result};

impl Driver {
    fn allocate(self, cuda: &'static str, hip: &'static str, bytes: usize) -> Answer<usize> {
        let mut address = 0;
        let name = self.name(cuda, hip);
        let code = call!(name, (&raw mut address => *mut usize, bytes => usize) -> i32);
        result(code, address)
    }

    fn allocate_flagged(
        self,
        cuda: &'static str,
        hip: &'static str,
        bytes: usize,
    ) -> Answer<usize> {
        let mut address = 0;
        let name = self.name(cuda, hip);
        let code = call!(
            name,
            (&raw mut address => *mut usize, bytes => usize, 1 => u32) -> i32
        );
        result(code, address)
    }

    pub(crate) fn try_alloc(self, bytes: usize) -> Answer<usize> {
        self.allocate("cuMemAlloc_v2", "hipMalloc", bytes)
    }

    /// Memory that is not allocated in stream order.
    #[track_caller]
    pub(crate) fn alloc(self, bytes: usize) -> usize {
        self.try_alloc(bytes).expect("a context is current")
    }

    #[track_caller]
    pub(crate) fn alloc_managed(self, bytes: usize) -> usize {
        self.allocate_flagged("cuMemAllocManaged", "hipMallocManaged", bytes)
            .expect("a context is current")
    }

    #[track_caller]
    pub(crate) fn alloc_pinned(self, bytes: usize) -> usize {
        self.allocate_flagged("cuMemHostAlloc", "hipHostMalloc", bytes)
            .expect("a context is current")
    }

    /// Memory that is allocated in stream order.
    pub(crate) fn try_alloc_async(self, bytes: usize, stream: usize) -> Answer<usize> {
        let mut address = 0;
        let name = self.name("cuMemAllocAsync", "hipMallocAsync");
        let code = call!(
            name,
            (&raw mut address => *mut usize, bytes => usize, stream => usize) -> i32
        );
        result(code, address)
    }

    #[track_caller]
    pub(crate) fn alloc_async(self, bytes: usize, stream: usize) -> usize {
        self.try_alloc_async(bytes, stream)
            .expect("a context is current")
    }

    pub(crate) fn free(self, address: usize) -> Answer {
        let name = self.name("cuMemFree_v2", "hipFree");
        answer(call!(name, (address => usize) -> i32))
    }

    pub(crate) fn free_pinned(self, address: usize) -> Answer {
        let name = self.name("cuMemFreeHost", "hipHostFree");
        answer(call!(name, (address => usize) -> i32))
    }

    pub(crate) fn free_async(self, address: usize, stream: usize) -> Answer {
        let name = self.name("cuMemFreeAsync", "hipFreeAsync");
        answer(call!(name, (address => usize, stream => usize) -> i32))
    }

    fn copy(self, name: &'static str, to: usize, from: usize, bytes: usize, on: usize) -> Answer {
        answer(call!(
            name,
            (to => usize, from => usize, bytes => usize, on => usize) -> i32
        ))
    }

    /// Copies between two blocks of device memory.
    pub(crate) fn copy_on_device(
        self,
        to: usize,
        from: usize,
        bytes: usize,
        stream: usize,
    ) -> Answer {
        let name = self.name("cuMemcpyDtoDAsync_v2", "hipMemcpyDtoDAsync");
        self.copy(name, to, from, bytes, stream)
    }

    /// Copies to host memory, which the caller keeps until the copy is done.
    pub(crate) fn copy_to_host(self, to: &mut [u8], from: usize, stream: usize) -> Answer {
        let name = self.name("cuMemcpyDtoHAsync_v2", "hipMemcpyDtoHAsync");
        let address = to.as_mut_ptr().expose_provenance();
        self.copy(name, address, from, to.len(), stream)
    }

    /// Copies to host memory on the legacy stream, and waits.
    pub(crate) fn copy_to_host_and_wait(self, to: &mut [u8], from: usize) -> Answer {
        let name = self.name("cuMemcpyDtoH_v2", "");
        let address = to.as_mut_ptr().expose_provenance();
        answer(call!(name, (address => usize, from => usize, to.len() => usize) -> i32))
    }

    /// Copies from host memory.
    pub(crate) fn copy_to_device(self, to: usize, from: &[u8], stream: usize) -> Answer {
        let name = self.name("cuMemcpyHtoDAsync_v2", "hipMemcpyHtoDAsync");
        let address = from.as_ptr().expose_provenance();
        self.copy(name, to, address, from.len(), stream)
    }

    /// Copies to the address of host memory, which exists until the copy is done.
    pub(crate) fn copy_to_address(
        self,
        to: usize,
        from: usize,
        bytes: usize,
        stream: usize,
    ) -> Answer {
        let name = self.name("cuMemcpyDtoHAsync_v2", "hipMemcpyDtoHAsync");
        self.copy(name, to, from, bytes, stream)
    }
}
