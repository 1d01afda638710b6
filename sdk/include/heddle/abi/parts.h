/* heddle/abi/parts.h - tensors that arrive in parts: who reads them begins while who makes them
 * goes on. */
#ifndef HEDDLE_ABI_PARTS_H
#define HEDDLE_ABI_PARTS_H

#include "node.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A flag of an output: the call may begin it before it is whole.
 * Of an input: the call may be made while the value's tensors are still being made. The node reads
 * their shapes at any time, and rows after await() alone. It is called so where it works in host
 * memory, when all its links to the maker have the flag; not for each element of a list, nor when
 * it has need() or asks for new nodes. It writes no file under its last name before the last row is
 * there: what the maker takes back is made anew, and then the call is made again; so it is, with
 * the whole, where memory lacked beside the maker. What it gives is seen when the maker is done;
 * where that holds such tensors, and the output has the flag, others may read these in parts, too.
 */
#define HEDDLE_PORT_PARTS (1u << 11)

/* Optional: without it everybody waits for the whole. Rows are those of the first axis. */
#define HEDDLE_SERVICE_PARTS "heddle.parts/0"
typedef struct heddle_parts_service {
  /* [call] The output is going to be this tensor, of make_host() and row-major, whose rows the call
   * fills from the first one on. In execute(), before it is deferred, of a node that is placed on a
   * device. Once, and again after it was taken back; set_output() gives it as ever in the end, and
   * neither another tensor nor a view of it unless it was taken back. 0: nobody reads it before it
   * is whole, and then the next two need not be called. */
  int32_t (*begin)(heddle_ctx*, heddle_port_index output, heddle_tensor*);
  /* [call] So many rows are written, and stay as they are. */
  void (*made)(heddle_ctx*, heddle_port_index output, int64_t rows);
  /* [call] The output is going to be something else. A call that fails need not say so: the run
   * fails with it. */
  void (*take_back)(heddle_ctx*, heddle_port_index output);
  /* [call] Waits until the first `rows` rows of a tensor that came by an input are there; comes
   * back at once where they are, as those of any other tensor. The last one is there when its maker
   * has ended well. HEDDLE_CANCELLED where it has not, or has taken the tensor back: then the call
   * has to end with that. */
  heddle_status* (*await)(heddle_ctx*, heddle_tensor*, int64_t rows);
} heddle_parts_service;

#ifdef __cplusplus
}
#endif
#endif
