//! The drivers' entry points for captures and graphs.

use super::{Answer, Driver, answer, library, result};

impl Driver {
    pub(crate) fn begin_capture(self, stream: usize, mode: i32) -> Answer {
        let name = self.name("cuStreamBeginCapture_v2", "hipStreamBeginCapture");
        answer(call!(name, (stream => usize, mode => i32) -> i32))
    }

    /// Returns the graph.
    pub(crate) fn end_capture(self, stream: usize) -> Answer<usize> {
        let mut graph = 0;
        let name = self.name("cuStreamEndCapture", "hipStreamEndCapture");
        let code = call!(name, (stream => usize, &raw mut graph => *mut usize) -> i32);
        result(code, graph)
    }

    /// 0: no, 1: yes, 2: its capture is invalidated.
    pub(crate) fn is_capturing(self, stream: usize) -> Answer<i32> {
        let mut status = -1;
        let name = self.name("cuStreamIsCapturing", "hipStreamIsCapturing");
        let code = call!(name, (stream => usize, &raw mut status => *mut i32) -> i32);
        answer(code).map(|()| status)
    }

    /// The status as in `is_capturing`, and the number of the capture.
    pub(crate) fn capture_info(self, stream: usize) -> Answer<(i32, u64)> {
        let mut status = -1;
        let mut id = 0;
        let name = self.name("cuStreamGetCaptureInfo", "hipStreamGetCaptureInfo");
        let code = call!(
            name,
            (stream => usize, &raw mut status => *mut i32, &raw mut id => *mut u64) -> i32
        );
        answer(code).map(|()| (status, id))
    }

    /// Sets the capture mode of this thread, and returns the previous one.
    pub(crate) fn exchange_mode(self, mode: i32) -> Answer<i32> {
        let mut mode = mode;
        let name = self.name(
            "cuThreadExchangeStreamCaptureMode",
            "hipThreadExchangeStreamCaptureMode",
        );
        let code = call!(name, (&raw mut mode => *mut i32) -> i32);
        answer(code).map(|()| mode)
    }

    /// Makes an executable graph.
    pub(crate) fn instantiate(self, graph: usize) -> Answer<usize> {
        let mut executable = 0;
        let name = self.name("cuGraphInstantiate_v2", "hipGraphInstantiate");
        let code = call!(
            name,
            (&raw mut executable => *mut usize, graph => usize, 0 => usize, 0 => usize, 0 => usize) -> i32
        );
        result(code, executable)
    }

    pub(crate) fn launch(self, executable: usize, stream: usize) -> Answer {
        let name = self.name("cuGraphLaunch", "hipGraphLaunch");
        answer(call!(name, (executable => usize, stream => usize) -> i32))
    }

    pub(crate) fn destroy_executable(self, executable: usize) -> Answer {
        let name = self.name("cuGraphExecDestroy", "hipGraphExecDestroy");
        answer(call!(name, (executable => usize) -> i32))
    }

    pub(crate) fn destroy_graph(self, graph: usize) -> Answer {
        let name = self.name("cuGraphDestroy", "hipGraphDestroy");
        answer(call!(name, (graph => usize) -> i32))
    }

    /// A user object, which a graph can own. Its last release calls `destructor` with `data`.
    pub(crate) fn user_object(
        self,
        data: usize,
        destructor: extern "C" fn(usize),
    ) -> Answer<usize> {
        let mut object = 0;
        let name = self.name("cuUserObjectCreate", "hipUserObjectCreate");
        let code = call!(
            name,
            (
                &raw mut object => *mut usize, data => usize,
                destructor => extern "C" fn(usize), 1 => u32, 1 => u32
            ) -> i32
        );
        result(code, object)
    }

    /// Moves the program's reference to a graph.
    pub(crate) fn give_to_graph(self, graph: usize, object: usize) -> Answer {
        let name = self.name("cuGraphRetainUserObject", "hipGraphRetainUserObject");
        answer(call!(
            name,
            (graph => usize, object => usize, 1 => u32, 1 => u32) -> i32
        ))
    }
}
