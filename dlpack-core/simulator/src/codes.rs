//! The result codes of the two drivers, and their names. HIP took CUDA's numbers for all that the simulator returns.

use core::ffi::CStr;

use crate::world::Api;

/// A failure, as both drivers number it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Code(pub(crate) i32);

/// What a call gives: a value or a code.
pub(crate) type Answer<T = ()> = Result<T, Code>;

macro_rules! codes {
    ($($(#[$meta:meta])* $constant:ident = $number:literal, $cuda:literal, $hip:literal;)*) => {
        impl Code {
            $($(#[$meta])* pub(crate) const $constant: Self = Self($number);)*

            /// The name that the driver gives the code.
            pub(crate) fn name(self, api: Api) -> Option<&'static CStr> {
                match (self.0, api) {
                    (0, Api::Cuda) => Some(c"CUDA_SUCCESS"),
                    (0, Api::Hip) => Some(c"hipSuccess"),
                    $(($number, Api::Cuda) => Some($cuda), ($number, Api::Hip) => Some($hip),)*
                    // This comes from `sim_fail` alone.
                    (719, Api::Cuda) => Some(c"CUDA_ERROR_LAUNCH_FAILED"),
                    (719, Api::Hip) => Some(c"hipErrorLaunchFailure"),
                    _ => None,
                }
            }
        }
    };
}

codes! {
    INVALID_VALUE = 1, c"CUDA_ERROR_INVALID_VALUE", c"hipErrorInvalidValue";
    OUT_OF_MEMORY = 2, c"CUDA_ERROR_OUT_OF_MEMORY", c"hipErrorOutOfMemory";
    NOT_INITIALIZED = 3, c"CUDA_ERROR_NOT_INITIALIZED", c"hipErrorNotInitialized";
    NO_DEVICE = 100, c"CUDA_ERROR_NO_DEVICE", c"hipErrorNoDevice";
    INVALID_DEVICE = 101, c"CUDA_ERROR_INVALID_DEVICE", c"hipErrorInvalidDevice";
    INVALID_CONTEXT = 201, c"CUDA_ERROR_INVALID_CONTEXT", c"hipErrorInvalidContext";
    INVALID_HANDLE = 400, c"CUDA_ERROR_INVALID_HANDLE", c"hipErrorInvalidHandle";
    /// A capture begins where one is, or ends where none is.
    ILLEGAL_STATE = 401, c"CUDA_ERROR_ILLEGAL_STATE", c"hipErrorIllegalState";
    /// A query would lose what its results have no place for.
    LOSSY_QUERY = 402, c"CUDA_ERROR_LOSSY_QUERY", c"hipErrorUnknown";
    NOT_READY = 600, c"CUDA_ERROR_NOT_READY", c"hipErrorNotReady";
    PEER_ALREADY = 704, c"CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", c"hipErrorPeerAccessAlreadyEnabled";
    PEER_NOT_ENABLED = 705, c"CUDA_ERROR_PEER_ACCESS_NOT_ENABLED", c"hipErrorPeerAccessNotEnabled";
    CONTEXT_IS_DESTROYED = 709, c"CUDA_ERROR_CONTEXT_IS_DESTROYED", c"hipErrorContextIsDestroyed";
    NOT_SUPPORTED = 801, c"CUDA_ERROR_NOT_SUPPORTED", c"hipErrorNotSupported";
    /// "The operation is not permitted when the stream is capturing."
    CAPTURE_UNSUPPORTED = 900, c"CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", c"hipErrorStreamCaptureUnsupported";
    /// "The current capture sequence on the stream has been invalidated due to a previous error."
    CAPTURE_INVALIDATED = 901, c"CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", c"hipErrorStreamCaptureInvalidated";
    /// "The operation would have resulted in a merge of two independent capture sequences."
    CAPTURE_MERGE = 902, c"CUDA_ERROR_STREAM_CAPTURE_MERGE", c"hipErrorStreamCaptureMerge";
    /// "The capture was not initiated in this stream."
    CAPTURE_UNMATCHED = 903, c"CUDA_ERROR_STREAM_CAPTURE_UNMATCHED", c"hipErrorStreamCaptureUnmatched";
    /// "The capture sequence contains a fork that was not joined to the primary stream."
    CAPTURE_UNJOINED = 904, c"CUDA_ERROR_STREAM_CAPTURE_UNJOINED", c"hipErrorStreamCaptureUnjoined";
    /// "A dependency would have been created which crosses the capture sequence boundary."
    CAPTURE_ISOLATION = 905, c"CUDA_ERROR_STREAM_CAPTURE_ISOLATION", c"hipErrorStreamCaptureIsolation";
    /// "A disallowed implicit dependency on a current capture sequence from cudaStreamLegacy."
    CAPTURE_IMPLICIT = 906, c"CUDA_ERROR_STREAM_CAPTURE_IMPLICIT", c"hipErrorStreamCaptureImplicit";
    /// "The operation is not permitted on an event which was last recorded in a capturing stream."
    CAPTURED_EVENT = 907, c"CUDA_ERROR_CAPTURED_EVENT", c"hipErrorCapturedEvent";
    /// "A stream capture sequence not initiated with the CU_STREAM_CAPTURE_MODE_RELAXED argument to
    /// cuStreamBeginCapture was passed to cuStreamEndCapture in a different thread."
    CAPTURE_WRONG_THREAD = 908, c"CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD", c"hipErrorStreamCaptureWrongThread";
    UNKNOWN = 999, c"CUDA_ERROR_UNKNOWN", c"hipErrorUnknown";
}
