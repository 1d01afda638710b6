/* heddle/abi/joined_model.h - a model with the weights of one more file: blocks that a patch brings
 * run among its own, in one graph. */
#ifndef HEDDLE_ABI_JOINED_MODEL_H
#define HEDDLE_ABI_JOINED_MODEL_H

#include "model.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HEDDLE_SERVICE_JOINED_MODEL "heddle.joined_model/0"
typedef struct heddle_joined_model_service {
  /* The graph that the model's family builds for this configuration over its own weights and those
   * of `file`, whose names begin with prefix there, with the model's patches and hints. Its path is
   * the model's. Fails where two tensors have a name, and with what the family says. Yours. [any]
   */
  heddle_status* (*join)(const heddle_value* model, const heddle_checkpoint* file,
                         const char* prefix, const heddle_value* config, heddle_value** out);
} heddle_joined_model_service;

#ifdef __cplusplus
}
#endif
#endif
