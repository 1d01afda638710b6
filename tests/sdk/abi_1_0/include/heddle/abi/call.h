/* heddle/abi/call.h - what a node may do while it runs: small services, one subject each.
 *
 * A plugin looks up the ones that it uses, once, in init(), and says there which one it misses. A
 * service has no optional function: what an engine may lack is a service of its own, marked
 * "optional" here. All take the heddle_ctx that execute(), need() or fingerprint() was given. It is
 * valid until that function returns, or until complete() where the call was deferred. */
#ifndef HEDDLE_ABI_CALL_H
#define HEDDLE_ABI_CALL_H

#include "value.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Positions in the lists of a heddle_node_desc, from 0. */
typedef uint32_t heddle_port_index; /* in inputs, or in outputs */
typedef uint32_t heddle_slot_index; /* in weights               */

/* ---- values in and out ---- */

#define HEDDLE_SERVICE_IO "heddle.io/0"
typedef struct heddle_io_service {
  const heddle_value* (*input)(heddle_ctx*,
                               heddle_port_index); /* [call] borrowed; NULL if absent   */
  heddle_status* (*set_output)(heddle_ctx*, heddle_port_index,
                               heddle_value*);            /* [call] takes the reference; what a
                                                           * maker of values gave, NULL too    */
  heddle_status* (*want)(heddle_ctx*, const char* input); /* [call] in need(): a lazy input    */

  uint32_t (*extra_count)(heddle_ctx*); /* [call] undeclared inputs (HEDDLE_NODE_ANY_INPUT)   */
  const char* (*extra_name)(heddle_ctx*, uint32_t index); /* [call] borrowed; NULL: out of range */
  const heddle_value* (*extra)(heddle_ctx*,
                               uint32_t index); /* [call] borrowed; NULL: out of range */
} heddle_io_service;

/* ---- the call itself ---- */

#define HEDDLE_SERVICE_CALL "heddle.call/0"
typedef struct heddle_call_service {
  int32_t (*cancelled)(heddle_ctx*);  /* [any]  */
  const char* (*node)(heddle_ctx*);   /* [any] "3" or "double.7"   */
  const char* (*device)(heddle_ctx*); /* [any] "cuda:0" */
  heddle_dtype (*compute)(
      heddle_ctx*); /* [any] element type that activations have on this device                 */
  void* (*stream)(heddle_ctx*); /* [call] native: cudaStream_t; NULL on the CPU and in blocks */
} heddle_call_service;

/* ---- reports to people ---- */

#define HEDDLE_SERVICE_REPORT "heddle.report/0"
typedef struct heddle_report_service {
  void (*progress)(heddle_ctx*, double fraction, const char* note); /* [any] note may be NULL */
  void (*warn)(heddle_ctx*, const char* message); /* [any] shown with the node's name           */
  /* What the node made for the user. path: a file that it wrote, or NULL. ui_json: a part of what
   * ComfyUI calls the node's "ui", an object of lists ({"text": ["hello"]}), or NULL; lists of one
   * name are joined. The run's results have both. [any] */
  void (*wrote)(heddle_ctx*, const char* path, const char* ui_json);
} heddle_report_service;

/* A picture of work under way, for people: 8-bit RGB, row-major, pixels[3 * (y * width + x)] is
 * red. */
typedef struct heddle_preview {
  uint32_t size;
  uint32_t width, height;    /* at least 1    */
  uint32_t step, step_count; /* the step that it shows, from 1, of so many */
  const uint8_t* pixels;     /* borrowed until the call returns     */
} heddle_preview;

/* How they are made of latents. */
enum {
  HEDDLE_PREVIEW_NONE = 0,
  HEDDLE_PREVIEW_LATENT2RGB = 1, /* by a linear map from channels to colours             */
  HEDDLE_PREVIEW_TAESD = 2       /* by a small decoder where there is one, else as above */
};

/* Optional: an engine that shows no pictures lacks it. */
#define HEDDLE_SERVICE_PREVIEW "heddle.preview/0"
typedef struct heddle_preview_service {
  /* HEDDLE_PREVIEW_...: NONE where nobody looks, and then nothing should be made. [any] */
  int32_t (*wanted)(heddle_ctx*);
  void (*show)(
      heddle_ctx*,
      const heddle_preview*); /* [any] dropped when nobody looks, or when it is no picture */
} heddle_preview_service;

/* ---- what is kept ---- */

#define HEDDLE_SERVICE_CACHE "heddle.cache/0"
typedef struct heddle_cache_service {
  /* What this call makes is not what the same inputs always give, because memory lacked for one. It
   * goes to this run's nodes alone: neither it nor what they make of it is kept for later runs, or
   * given to runs that wait for the same node. [any] */
  void (*do_not_cache)(heddle_ctx*);
} heddle_cache_service;

/* ---- device operations ---- */

typedef uint32_t heddle_op_id; /* stands for an op's name, in this process only */
#define HEDDLE_NO_OP ((heddle_op_id)0)

#define HEDDLE_SERVICE_OPS "heddle.ops/0"
typedef struct heddle_ops_service {
  /* The id of a name such as "linear/1"; to be asked for once. HEDDLE_NO_OP: there is no name.
   * [any] */
  heddle_op_id (*find)(const char* name);
  /* Enqueues. Operands that are optional may be NULL. The device's best kernel is found once per
   * signature. [call] */
  heddle_status* (*enqueue)(heddle_ctx*, heddle_op_id, uint32_t in_count, heddle_tensor* const* in,
                            uint32_t out_count, heddle_tensor* const* out, const void* attrs,
                            uint32_t attrs_size);
} heddle_ops_service;

/* ---- blocks ---- */

/* A block that is placed on several devices is traced once for each: every trace is one rank of the
 * group and sees its shard. Ranks issue the same collective ops in the same order; on one device
 * they are not issued.
 *   SEQUENCE  (parallel mode sequence) inputs flagged so hold the rank's tokens, outputs flagged so
 *             have to
 *   ROWS      (parallel mode tensor) slots that the model's build() allowed to be divided hold the
 *             rank's part */
typedef struct heddle_group {
  uint32_t size;
  int32_t kind;         /* HEDDLE_GROUP_...    */
  uint32_t rank, count; /* this rank, from 0, of all */
} heddle_group;
enum { HEDDLE_GROUP_NONE = 0, HEDDLE_GROUP_SEQUENCE = 1, HEDDLE_GROUP_ROWS = 2 };
/* Which of all tokens an input holds: [begin, end) of total. */
typedef struct heddle_shard {
  uint32_t size;
  int64_t begin, end, total;
} heddle_shard;

/* What blocks alone have. */
#define HEDDLE_SERVICE_BLOCK "heddle.block/0"
typedef struct heddle_block_service {
  heddle_tensor* (*weight)(heddle_ctx*, heddle_slot_index); /* [call] borrowed; NULL if not given */
  void (*group)(heddle_ctx*, heddle_group* out);            /* [call] none outside of blocks      */
  heddle_status* (*shard)(heddle_ctx*, heddle_port_index input,
                          heddle_shard* out); /* [call] all of them when alone     */
} heddle_block_service;

/* ---- models ---- */

typedef struct heddle_session heddle_session;

/* Opens a model for a known loop. Records are by the model's input names. */
typedef struct heddle_session_open {
  uint32_t size;
  uint32_t set_count;  /* sets of one step: 1, or 2 for guidance with two conditionings  */
  uint32_t step_count; /* 1 for a model that is called once */
  const heddle_value* model;
  const heddle_value* const* constants; /* a record per set: the same at every step */
  const heddle_value*
      schedule; /* record of tensors (step_count, ...): known before the loop; NULL: none */
} heddle_session_open;

/* A model's block graph as a child run: same planner, same transfers, same memory, same
 * cancellation. */
#define HEDDLE_SERVICE_SESSION "heddle.session/0"
typedef struct heddle_session_service {
  heddle_status* (*open)(heddle_ctx*, const heddle_session_open*,
                         heddle_session** out); /* [call] */
  /* Only enqueues, at most one step beyond the running one. step counts from 0. sets: a record per
   * set with the inputs that change at every step; out: a record per set, yours. Shapes are those
   * of the first step. [call] */
  heddle_status* (*step)(heddle_session*, uint32_t step, const heddle_value* const* sets,
                         heddle_value** out);
  void (*close)(heddle_session*); /* [call] NULL is fine */
} heddle_session_service;

/* ---- new nodes ---- */

/* A call of a node flagged HEDDLE_NODE_EXPANDS may ask for new nodes, and give links into them (or
 * to other nodes of the workflow) instead of values. Its outputs are there when those are; sinks
 * among the new nodes run as well. An output that is linked to a list becomes that list. Literals
 * are held to what ports take, and defaults stand where nothing is given; nothing else is checked
 * before the nodes run. Ids are of no other node of the run, and should be the same in every run:
 * they begin with a prefix. */
#define HEDDLE_SERVICE_EXPANSION "heddle.expansion/0"
typedef struct heddle_expansion_service {
  /* "<node>.<call>.<graph>.", for one more graph of this call; borrowed until the next. [call] */
  heddle_status* (*prefix)(heddle_ctx*, const char** out);
  /* `display`: the id that people see instead of the new one; NULL: that of this node. `out`: the
   * node's number in this call. [call] */
  heddle_status* (*add_node)(heddle_ctx*, const char* id, const char* class_type,
                             const char* display, uint32_t* out);
  heddle_status* (*set_input)(heddle_ctx*, uint32_t node, const char* input,
                              const heddle_value*); /* [call] a literal; shared */
  heddle_status* (*link_input)(heddle_ctx*, uint32_t node, const char* input, const char* from,
                               heddle_port_index from_output); /* [call] from: an id */
  heddle_status* (*link_output)(heddle_ctx*, heddle_port_index output, const char* from,
                                heddle_port_index from_output); /* [call] instead of set_output() */
} heddle_expansion_service;

/* The nodes of the run, those that came while it was under way as well: what ComfyUI's DYNPROMPT
 * tells. */
#define HEDDLE_SERVICE_WORKFLOW "heddle.workflow/0"
typedef struct heddle_workflow_service {
  /* A record, yours: class_type; values: a record of literals by input; links: a record of lists
   * [id, output]; display, parent, real: ids (parent is empty for a node of the workflow). NULL: no
   * node has this id. [call] */
  heddle_status* (*node)(heddle_ctx*, const char* id, heddle_value** out);
} heddle_workflow_service;

/* ---- calls that go on after execute() ---- */

typedef struct heddle_completion heddle_completion;

/* For work that is neither on this thread nor on the stream: execute() returns at once, the node is
 * done when complete() is called. The heddle_ctx stays valid until then. */
#define HEDDLE_SERVICE_COMPLETION "heddle.completion/0"
typedef struct heddle_completion_service {
  /* NULL: there is no memory, or the call is a block's; return an error then. [call] */
  heddle_completion* (*defer)(heddle_ctx*);
  void (*complete)(heddle_completion*, heddle_status*); /* [any] once; takes the status */
} heddle_completion_service;

/* ---- calls that are resumed ---- */

/* A call that works in steps may be stopped between two of them and go on later: in another call of
 * the same node with the same inputs, perhaps on another device or in another process. What it
 * gives then has to be what it would have given without the stop. */
#define HEDDLE_SERVICE_RESUME "heddle.resume/0"
typedef struct heddle_resume_service {
  /* What an earlier call has given to save(), its tensors row-major in host memory; NULL: the call
   * begins. Borrowed, as long as the call. [call] */
  const heddle_value* (*state)(heddle_ctx*);
  /* To be asked between two steps; waits while the run is paused. 1: save() wants the state now. 0:
   * the next step may begin. [call] */
  int32_t (*at_boundary)(heddle_ctx*);
  /* The state: numbers, texts, lists, records, and tensors, which are copied before it returns.
   * Takes the reference. A status: the call does not go on; return it. [call] */
  heddle_status* (*save)(heddle_ctx*, heddle_value*);
} heddle_resume_service;

#ifdef __cplusplus
}
#endif
#endif
