/* What ABI 1.0 froze (v1/), held against the headers of today as C has them. */
#include <heddle/abi/batch_ops.h>
#include <heddle/abi/delta_ops.h>
#include <heddle/abi/device.h>
#include <heddle/abi/frame_ops.h>
#include <heddle/abi/front_end.h>
#include <heddle/abi/joined_model.h>
#include <heddle/abi/model.h>
#include <heddle/abi/norm_ops.h>
#include <heddle/abi/ops.h>
#include <heddle/abi/picture_files.h>
#include <heddle/abi/row_ops.h>
#include <heddle/abi/send.h>
#include <heddle/abi/weight_change.h>
#include <string.h>

#define TABLE(type, bytes) _Static_assert(sizeof(type) == (bytes), #type);
#define RECORD(type, bytes) _Static_assert(sizeof(type) >= (bytes), #type);
#define MEMBER(type, member, at, bytes)                                                   \
  _Static_assert(offsetof(type, member) == (at) && sizeof(((type*)0)->member) == (bytes), \
                 #type "." #member);
#define NUMBER(name, value) _Static_assert((int64_t)(name) == (int64_t)(value), #name);
#include "tests/abi/v1/calls.inc"
#include "tests/abi/v1/devices.inc"
#include "tests/abi/v1/nodes_models.inc"
#include "tests/abi/v1/numbers.inc"

/* A name of 1.0 that reads otherwise today; NULL: there is none. */
const char* heddle_abi_renamed(void);
const char* heddle_abi_renamed(void) {
#define NAME(macro, text) \
  if (strcmp(macro, text) != 0) return #macro;
#include "tests/abi/v1/names.inc"
  return NULL;
}
