/* heddle/abi/validate.h - what a node says of its inputs before anything of a workflow runs. */
#ifndef HEDDLE_ABI_VALIDATE_H
#define HEDDLE_ABI_VALIDATE_H

#include "call.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct heddle_validation
    heddle_validation; /* one question about one workflow node; valid until validate() returns */

/* What the workflow says of the node. [any] */
#define HEDDLE_SERVICE_VALIDATION "heddle.validation/0"
typedef struct heddle_validation_service {
  /* The literal of an input that the validator names, or its default; borrowed. NULL: the input is
   * linked, absent, refused already, or not named. */
  const heddle_value* (*value)(heddle_validation*, heddle_port_index input);
  /* The type of the output that a named input is linked to, "IMAGE"; borrowed. NULL: it is not. */
  const char* (*received)(heddle_validation*, heddle_port_index input);
  /* Whether the file that a named input names by its literal is in a folder: of models, or "input",
   * where "a.png [output]" is one of another folder. 1 also where nobody knows the folders. */
  int32_t (*has_file)(heddle_validation*, heddle_port_index input, const char* folder);
} heddle_validation_service;

/* Optional part of a node (heddle_node_desc.validator). It is asked last, also where something is
 * wrong already, and once for a node; what it says is told for each input that it names. */
typedef struct heddle_validator {
  uint32_t size;
  uint32_t flags;
  /* Names of inputs, NULL-terminated: their ranges and choices are its own matter, and nobody else
   * holds values to them, not even at run time; their kinds are looked at as ever. NULL: all. */
  const char* const* inputs;
  /* A status is what is wrong; its message, which may be empty, is shown. [any] */
  heddle_status* (*validate)(const heddle_host*, heddle_validation*);
} heddle_validator;
enum {
  HEDDLE_VALIDATOR_TYPES = 1u << 0 /* the node's links may have any type: it looks at received() */
};

#ifdef __cplusplus
}
#endif
#endif
