/* The structs and constants of DLPack 1.3, for C and C++ code that exchanges tensors with Rust.
 *
 * `Managed::into_raw` returns a `DLManagedTensorVersioned *`, and `Managed::from_raw` takes one. The owner of such a pointer calls
 * `deleter(self)` exactly once. Check `version.major` before any field after `flags` is read. `byte_offset` is added to `data`.
 *
 * The names are those of dlpack.h. Code that uses dlpack.h too includes it first; then this file declares nothing.
 * Written by `UPDATE_EXPECT=1 cargo test -p dlpack-core --test abi`, which compares it with the Rust structs.
 */
#ifndef DLPACK_CORE_H
#define DLPACK_CORE_H
#ifndef DLPACK_DLPACK_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DLPACK_MAJOR_VERSION 1
#define DLPACK_MINOR_VERSION 3

#define DLPACK_FLAG_BITMASK_READ_ONLY UINT64_C(1)
#define DLPACK_FLAG_BITMASK_IS_COPIED UINT64_C(2)
#define DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED UINT64_C(4)

#ifdef __cplusplus
typedef enum : int32_t {
#else
typedef enum {
#endif
  kDLCPU = 1,
  kDLCUDA = 2,
  kDLCUDAHost = 3,
  kDLOpenCL = 4,
  kDLVulkan = 7,
  kDLMetal = 8,
  kDLVPI = 9,
  kDLROCM = 10,
  kDLROCMHost = 11,
  kDLExtDev = 12,
  kDLCUDAManaged = 13,
  kDLOneAPI = 14,
  kDLWebGPU = 15,
  kDLHexagon = 16,
  kDLMAIA = 17,
  kDLTrn = 18,
} DLDeviceType;

#ifdef __cplusplus
typedef enum : int32_t {
#else
typedef enum {
#endif
  kDLInt = 0,
  kDLUInt = 1,
  kDLFloat = 2,
  kDLOpaqueHandle = 3,
  kDLBfloat = 4,
  kDLComplex = 5,
  kDLBool = 6,
  kDLFloat8_e3m4 = 7,
  kDLFloat8_e4m3 = 8,
  kDLFloat8_e4m3b11fnuz = 9,
  kDLFloat8_e4m3fn = 10,
  kDLFloat8_e4m3fnuz = 11,
  kDLFloat8_e5m2 = 12,
  kDLFloat8_e5m2fnuz = 13,
  kDLFloat8_e8m0fnu = 14,
  kDLFloat6_e2m3fn = 15,
  kDLFloat6_e3m2fn = 16,
  kDLFloat4_e2m1fn = 17,
} DLDataTypeCode;

typedef struct DLPackVersion {
  uint32_t major;
  uint32_t minor;
} DLPackVersion;

typedef struct DLDevice {
  DLDeviceType device_type;
  int32_t device_id;
} DLDevice;

typedef struct DLDataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
} DLDataType;

typedef struct DLTensor {
  void *data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t *shape;
  int64_t *strides;
  uint64_t byte_offset;
} DLTensor;

typedef struct DLManagedTensor {
  DLTensor dl_tensor;
  void *manager_ctx;
  void (*deleter)(struct DLManagedTensor *self);
} DLManagedTensor;

typedef struct DLManagedTensorVersioned {
  DLPackVersion version;
  void *manager_ctx;
  void (*deleter)(struct DLManagedTensorVersioned *self);
  uint64_t flags;
  DLTensor dl_tensor;
} DLManagedTensorVersioned;

typedef struct DLPackExchangeAPIHeader {
  DLPackVersion version;
  struct DLPackExchangeAPIHeader *prev_api;
} DLPackExchangeAPIHeader;

typedef struct DLPackExchangeAPI {
  DLPackExchangeAPIHeader header;
  int (*managed_tensor_allocator)(DLTensor *, DLManagedTensorVersioned **, void *, void (*SetError)(void *, const char *, const char *));
  int (*managed_tensor_from_py_object_no_sync)(void *, DLManagedTensorVersioned **);
  int (*managed_tensor_to_py_object_no_sync)(DLManagedTensorVersioned *, void **);
  int (*dltensor_from_py_object_no_sync)(void *, DLTensor *);
  int (*current_work_stream)(DLDeviceType, int32_t, void **);
} DLPackExchangeAPI;

#ifdef __cplusplus
}
#endif

#endif
#endif
