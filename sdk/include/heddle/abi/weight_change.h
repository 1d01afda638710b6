/* heddle/abi/weight_change.h - changes of weights that are no sums of products: what becomes of
 * rows is computed of all of them. Those of sums of products are cheaper (heddle_patch). */
#ifndef HEDDLE_ABI_WEIGHT_CHANGE_H
#define HEDDLE_ABI_WEIGHT_CHANGE_H

#include "model.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct heddle_weight_change {
  uint32_t size;
  const heddle_part* part; /* of the model's checkpoint */
  /* What tells the change from others of the same file: what it reads of it, and how strong it is.
   */
  const char* identity;
  /* Changes the part's rows, row-major, where they stand: (rows, width) numbers, as earlier changes
   * made them. The same for the same numbers. [any], and by several threads at once */
  heddle_status* (*apply)(void* self, int64_t rows, int64_t width, float* numbers);
  void* self;
  void (*drop)(void* self); /* once, when nobody holds the change any more. [any] */
} heddle_weight_change;

#define HEDDLE_SERVICE_WEIGHT_CHANGE "heddle.weight_change/0"
typedef struct heddle_weight_change_service {
  /* The model with these changes of its weights, after those it has. They are carried out in host
   * memory when a weight is made; what is quantised becomes 16 or 32 bits there, as the device
   * computes. `file`: what the changes read. Takes every `self`, also where it fails, which it does
   * for parts in blocks. [any] */
  heddle_status* (*with_changes)(const heddle_value* model, const heddle_checkpoint* file,
                                 uint32_t count, const heddle_weight_change* const* changes,
                                 heddle_value** out);
} heddle_weight_change_service;

#ifdef __cplusplus
}
#endif
#endif
