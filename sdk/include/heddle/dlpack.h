/* heddle/dlpack.h - the structs of DLPack before version 1.0, by which frameworks hand each other
 * tensors in memory.
 *
 * Only what heddle takes and gives is declared. A program that includes <dlpack/dlpack.h> includes
 * it first: then these declarations stand back. */
#ifndef HEDDLE_DLPACK_H
#define HEDDLE_DLPACK_H
#ifndef DLPACK_DLPACK_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct DLDevice {
  int32_t device_type; /* HEDDLE_DL_... */
  int32_t device_id;
} DLDevice;

typedef struct DLDataType {
  uint8_t code;   /* HEDDLE_DL_... */
  uint8_t bits;   /* of one lane */
  uint16_t lanes; /* 1: not a vector */
} DLDataType;

typedef struct DLTensor {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;       /* ndim sizes */
  int64_t* strides;     /* ndim steps, in elements; NULL: row-major */
  uint64_t byte_offset; /* from data to element (0, ...) */
} DLTensor;

typedef struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(struct DLManagedTensor*
                      self); /* whoever has taken the tensor calls it once; NULL: nothing to do */
} DLManagedTensor;

#ifdef __cplusplus
}
#endif
#endif /* DLPACK_DLPACK_H_ */

/* DLDevice::device_type: memory that the host can read. */
enum { HEDDLE_DL_CPU = 1, HEDDLE_DL_CUDA_HOST = 3 };

/* DLDataType::code */
enum {
  HEDDLE_DL_INT = 0,
  HEDDLE_DL_UINT = 1,
  HEDDLE_DL_FLOAT = 2,
  HEDDLE_DL_BFLOAT = 4,
  HEDDLE_DL_BOOL = 6,
  HEDDLE_DL_FLOAT8_E4M3FN = 10,
  HEDDLE_DL_FLOAT8_E5M2 = 12
};

#endif
