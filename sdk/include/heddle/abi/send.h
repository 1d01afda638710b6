/* heddle/abi/send.h - pictures that a node sends to whoever follows the run, instead of files. */
#ifndef HEDDLE_ABI_SEND_H
#define HEDDLE_ABI_SEND_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HEDDLE_SERVICE_SEND "heddle.send/0"
typedef struct heddle_send_service {
  /* A picture that the call has made, as the bytes of a PNG file, borrowed until this returns. The
   * run's observer is told at once, of each picture in the order of the calls, whether or not
   * previews are wanted; nobody keeps it. HEDDLE_INVALID_ARGUMENT for what is no PNG. [any] */
  heddle_status* (*picture)(heddle_ctx*, const void* png, uint64_t bytes);
} heddle_send_service;

#ifdef __cplusplus
}
#endif
#endif
