/* heddle/abi/value.h - what travels along an edge.
 *
 * A value is an immutable, reference-counted handle: none, bool, int, uint, float, str, tensor,
 * list, record, model, object, blocker. A record is named values. Anything that holds a tensor must
 * be a record or a list, never an object: the transfer engine looks inside records and lists, and
 * cannot look inside objects. An object is {interface id, table, self}: whoever knows the interface
 * may call the table. */
#ifndef HEDDLE_ABI_VALUE_H
#define HEDDLE_ABI_VALUE_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct heddle_value heddle_value;
typedef struct heddle_tensor heddle_tensor;
typedef struct heddle_ctx heddle_ctx; /* one call of one node */

typedef int32_t heddle_kind;
enum {
  HEDDLE_KIND_NONE = 0,
  HEDDLE_KIND_BOOL = 1,
  HEDDLE_KIND_INT = 2,  /* int64_t                                         */
  HEDDLE_KIND_UINT = 3, /* above INT64_MAX only: seeds reach 2^64 - 1      */
  HEDDLE_KIND_FLOAT = 4,
  HEDDLE_KIND_STR = 5,
  HEDDLE_KIND_TENSOR = 6,
  HEDDLE_KIND_LIST = 7,
  HEDDLE_KIND_RECORD = 8,
  HEDDLE_KIND_MODEL = 9,
  HEDDLE_KIND_OBJECT = 10,
  HEDDLE_KIND_BLOCKER = 11 /* in the place of a value: see make_blocker()     */
};

typedef int32_t heddle_dtype;
enum {
  HEDDLE_F32 = 1,
  HEDDLE_F16 = 2,
  HEDDLE_BF16 = 3,
  HEDDLE_I32 = 4,
  HEDDLE_I64 = 5,
  HEDDLE_U8 = 6,
  HEDDLE_I8 = 7,
  HEDDLE_F8_E4M3 = 8,
  HEDDLE_F8_E5M2 = 9,
  HEDDLE_F64 = 10,
  HEDDLE_BOOL8 = 11,
  HEDDLE_I16 = 12,
  HEDDLE_U16 = 13,
  HEDDLE_U32 = 14,
  HEDDLE_U64 = 15,
  /* Block formats, as gguf files have them: elements along the last axis stand in blocks that share
   * their scales, so an element has no size of its own. Block of 32 elements and its bytes; of 256
   * for the _K ones and those behind them. Little-endian. */
  HEDDLE_Q8_0 = 16, /* 34 */
  HEDDLE_Q4_0 = 17, /* 18 */
  HEDDLE_Q4_1 = 18, /* 20 */
  HEDDLE_Q5_0 = 19, /* 22 */
  HEDDLE_Q5_1 = 20, /* 24 */
  HEDDLE_Q4_K = 21, /* 144 */
  HEDDLE_Q5_K = 22, /* 176 */
  HEDDLE_Q6_K = 23, /* 210 */
  /* Blocks of 256 i8 behind the f32 that they are multiplied by: what ComfyUI's quantised files
   * call int8_tensorwise. Rotated: multiplied first with the regular Hadamard matrix of order 256
   * over 16, the Kronecker product of [1 1 1 -1; 1 1 -1 1; 1 -1 1 1; -1 1 1 1] with itself four
   * times (https://arxiv.org/abs/2512.03673). */
  HEDDLE_I8_SCALED = 24,  /* 260 */
  HEDDLE_I8_ROTATED = 25, /* 260 */
  /* Blocks of 256, as the same files have them, behind the f32 that all are multiplied by. Of 4
   * bits: 16 bytes after another hold 32 numbers, the low half of byte i number i, the high half
   * number i + 16.
   * NVFP4: 16 scales of f8_e4m3, one for 16 numbers each, and numbers of 4 bits: a sign, then one
   * of 0, 0.5, 1, 1.5, 2, 3, 4 and 6. A scale is multiplied with the f32 first.
   * I4_ROTATED: whole numbers from -8 to 7, in two's complement, rotated as those of I8_ROTATED.
   * I4_CODED: 16 scales as NVFP4's, and numbers of 4 bits, which stand for HEDDLE_I4_LEVELS. A
   * level times its scale, rounded to the nearest whole number, ties to even, and kept within -127
   * and 127, is a number of I8_ROTATED. */
  HEDDLE_NVFP4 = 26,      /* 148 */
  HEDDLE_I4_ROTATED = 27, /* 132 */
  HEDDLE_I4_CODED = 28,   /* 148 */
  /* MXFP8: 8 bytes, one for 32 numbers each: the biased exponent of an f32, a power of 2 or zero
   * that they are multiplied by; then 256 f8_e4m3.
   * I4_GROUPED: 4 f32, one for 64 numbers each, then 4 more; then numbers from 0 to 15, as above:
   * (number - 8) times the first plus the second. */
  HEDDLE_MXFP8 = 29,     /* 264 */
  HEDDLE_I4_GROUPED = 30 /* 160 */
};

/* What numbers 0 to 15 of HEDDLE_I4_CODED stand for: levels of a normal distribution, as
 * asym_w4a8_int8 files have them in "weight_codebook". */
#define HEDDLE_I4_LEVELS                                                                         \
  {                                                                                              \
    -0.980602f, -0.794529f, -0.638165f, -0.500986f, -0.377321f, -0.263187f, -0.155210f,          \
        -0.050720f, 0.052541f, 0.156985f, 0.265284f, 0.379533f, 0.502636f, 0.638953f, 0.794876f, \
        0.980671f                                                                                \
  }

enum { HEDDLE_MAX_RANK = 8 };

/* How the elements lie in memory. HEDDLE_LAYOUT_STRIDED: by the strides. Any other number is
 * private to the kind of device that made the tensor (a packed weight): only its kernels may read
 * the bytes, shape stays the logical one. */
typedef uint32_t heddle_layout;
#define HEDDLE_LAYOUT_STRIDED ((heddle_layout)0)

/* Shape and element type. */
typedef struct heddle_tensor_info {
  uint32_t size;
  heddle_dtype dtype;
  uint32_t rank;
  heddle_layout layout;
  int64_t shape[HEDDLE_MAX_RANK];  /* elements; entries from rank on are ignored  */
  int64_t stride[HEDDLE_MAX_RANK]; /* elements; all zero, where a tensor is asked for, means
                                    * row-major. Of block formats the last size and all strides but
                                    * the last, which is 1, are whole blocks */
} heddle_tensor_info;

/* How kernels read a weight: decides its layout on a device. */
typedef int32_t heddle_use;
enum {
  HEDDLE_USE_VECTOR = 0, /* biases, norm weights, small tables: plain row-major */
  HEDDLE_USE_LINEAR = 1, /* the matrix of "linear/1", (out, in) */
  HEDDLE_USE_CONV2D = 2, /* the filter of "conv2d/1", (out, in, height, width) */
  HEDDLE_USE_TABLE = 3,  /* the table of "embedding/1", (rows, width)  */
  /* Never of a slot; devices are told so of a USE_LINEAR slot whose checkpoint is scaled to fp8
   * (heddle/abi/model.h): rows may be given a scale each, and both operands of the GEMM rounded
   * to f8_e4m3. A device without such GEMMs takes it for a USE_LINEAR matrix of f8_e4m3. */
  HEDDLE_USE_LINEAR_FP8 = 4,
  /* The bias of "linear/1" ops whose output has the device's compute type, and nothing else: a
   * vector that a device may keep in that type, if its products take no other. Devices are told so
   * if they know it (heddle_device_uses), else USE_VECTOR. */
  HEDDLE_USE_BIAS = 5
};

#define HEDDLE_SERVICE_VALUE "heddle.value/0"
typedef struct heddle_value_service {
  void (*retain)(const heddle_value*);      /* [any] */
  void (*release)(const heddle_value*);     /* [any] NULL is fine */
  heddle_kind (*kind)(const heddle_value*); /* [any] */

  /* Each getter fails with HEDDLE_INVALID_ARGUMENT when the value is of another kind. Borrowed.
   * [any] */
  heddle_status* (*get_bool)(const heddle_value*, int32_t* out);
  heddle_status* (*get_int)(const heddle_value*, int64_t* out);   /* a uint that fits, too   */
  heddle_status* (*get_uint)(const heddle_value*, uint64_t* out); /* an int >= 0, too        */
  heddle_status* (*get_float)(const heddle_value*, double* out);  /* int, uint, too          */
  heddle_status* (*get_str)(const heddle_value*, heddle_str* out);
  heddle_status* (*get_tensor)(const heddle_value*, heddle_tensor** out);
  heddle_status* (*get_object)(const heddle_value*, const char* interface_id, const void** table,
                               void** self);

  uint32_t (*count)(const heddle_value*); /* of a list or record, else 0 */
  const heddle_value* (*item)(const heddle_value*, uint32_t index); /* NULL: out of range */
  const char* (*key)(const heddle_value* record, uint32_t index); /* NULL: out of range          */
  const heddle_value* (*field)(const heddle_value* record, const char* key); /* NULL: absent */

  /* Making: the result is yours. NULL only when memory is out. make_tensor takes the reference;
   * list and record retain their members; an object calls drop(self) when its last holder is gone.
   * [any] */
  heddle_value* (*make_none)(void);
  heddle_value* (*make_bool)(int32_t);
  heddle_value* (*make_int)(int64_t);
  heddle_value* (*make_uint)(uint64_t);
  heddle_value* (*make_float)(double);
  heddle_value* (*make_str)(heddle_str);
  heddle_value* (*make_tensor)(heddle_tensor*);
  heddle_value* (*make_list)(uint32_t count, const heddle_value* const* items);
  heddle_value* (*make_record)(uint32_t count, const char* const* keys,
                               const heddle_value* const* values);
  heddle_value* (*make_object)(const char* interface_id, const void* table, void* self,
                               void (*drop)(void* self));
  /* ComfyUI's ExecutionBlocker: a node gives it instead of an output, or as an element of one that
   * is a list. A call that would read one is not made, and all that it would have given is blocked,
   * too; so no node ever sees one. With a message (not empty) the first node that would have read
   * it is reported; the run goes on either way, and succeeds. */
  heddle_value* (*make_blocker)(heddle_str message);
} heddle_value_service;

#define HEDDLE_SERVICE_TENSOR "heddle.tensor/0"
typedef struct heddle_tensor_service {
  void (*retain)(heddle_tensor*); /* [any] */
  void (*release)(
      heddle_tensor*); /* [any] memory returns to the pool in stream order; NULL is fine */

  const heddle_tensor_info* (*info)(
      const heddle_tensor*); /* [any] lives as long as the tensor, strides filled in */
  void* (*data)(
      heddle_tensor*); /* [any] device address; host-readable for host tensors. NULL inside a block:
                        * blocks are traced, they describe work and never touch elements       */
  const char* (*device)(const heddle_tensor*); /* [any] "cpu:0"; "host" for host memory */

  /* New tensor on the device of the call, ordered on its stream; contents undefined. [call] */
  heddle_status* (*make)(heddle_ctx*, const heddle_tensor_info*, heddle_tensor** out);
  /* New tensor in host memory, writable by the caller until it becomes an output. Counts within the
   * host's budget as long as anybody has it or a view of it: HEDDLE_OUT_OF_MEMORY, with who holds
   * what, where there is no more. [call] */
  heddle_status* (*make_host)(heddle_ctx*, const heddle_tensor_info*, heddle_tensor** out);
  /* Another look at the same memory: element (0,...) lies offset elements after the old first one.
   * Fails when any element would lie outside. [any] */
  heddle_status* (*view)(heddle_tensor*, const heddle_tensor_info*, int64_t offset,
                         heddle_tensor** out);
  /* Copies to the device of the call; src may be reused on return. Row-major. [call] */
  heddle_status* (*upload)(heddle_ctx*, const heddle_tensor_info*, const void* src,
                           heddle_tensor** out);
  /* Waits for the tensor and copies its elements, row-major, to host memory of exactly that many
   * bytes. The one blocking call. [call] */
  heddle_status* (*read)(heddle_ctx*, heddle_tensor*, void* dst, size_t bytes);
} heddle_tensor_service;

/* JSON text to values and back: null, booleans, numbers, strings, lists, records. Errors carry
 * name:line:column. */
#define HEDDLE_SERVICE_JSON "heddle.json/0"
typedef struct heddle_json_service {
  heddle_status* (*parse)(const heddle_host*, heddle_str text, const char* name,
                          heddle_value** out); /* [any] */
  heddle_status* (*write)(const heddle_host*, const heddle_value*,
                          heddle_value** out_str); /* [any] */
} heddle_json_service;

#ifdef __cplusplus
}
#endif
#endif
