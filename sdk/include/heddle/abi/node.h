/* heddle/abi/node.h - declare a node, run a node.
 *
 * There are two kinds of call. A workflow node's execute() runs with real tensors: ops are enqueued at
 * once. A block (a node of a model's graph) is recorded: its execute() is called with tensors that have a
 * shape but no data, the ops it issues become the model's program, and the engine lays out memory, moves
 * weights and replays that program, step after step, without calling the block again. So a block is a
 * pure function of shapes and literals, has no instance (create is NULL), and needs no separate cost
 * function: shapes, FLOPs, bytes and scratch are read off the recording. */
#ifndef HEDDLE_ABI_NODE_H
#define HEDDLE_ABI_NODE_H

#include "value.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HEDDLE_NODES "heddle.nodes/0" /* heddle_plugin.provide -> heddle_list of heddle_node_desc */

/* How a front end edits an unlinked input, and which values the engine accepts for it.
 *
 * What a node may rely on, in execute(), need(), fingerprint() and infer(), whoever made the value (a literal, a link,
 * a cache, a program that embeds the engine): a value of a port of the type INT, FLOAT, STRING or BOOLEAN is of that
 * kind (FLOAT takes integers, too); a number lies within min and max; a FLOAT is finite (but see
 * HEDDLE_PORT_NONFINITE); the text of a CHOICE is one of its choices. The engine refuses anything else and names the
 * node, the input and the value. It says nothing of how two inputs go together, nor whether a product of them fits
 * (heddle/checked.hpp), nor whether the file of a FILE is there. */
typedef struct heddle_widget {
  uint32_t size;
  int32_t kind;
  double number;        /* default, for numbers and toggles                                         */
  const char* text;     /* default, for text, choices and files                                     */
  double min, max;      /* both inclusive, when min < max; else an INT ranges over all of int64, a
                           SEED over all of uint64                                                   */
  double step, round;   /* for front ends                                                           */
  const char* const* choices; /* NULL-terminated; CHOICE only                                       */
  const char* source;   /* CHOICE: a registry kind whose descs begin {uint32 size; const char* name};
                           FILE, FOLDER: the folder under the model directories, or "input"          */
  const char* extra;    /* JSON object merged into the options of /object_info, or NULL              */
} heddle_widget;
enum {
  HEDDLE_WIDGET_INT = 1,
  HEDDLE_WIDGET_FLOAT,
  HEDDLE_WIDGET_TOGGLE,
  HEDDLE_WIDGET_TEXT,
  HEDDLE_WIDGET_CHOICE,
  HEDDLE_WIDGET_SEED,
  HEDDLE_WIDGET_FILE,
  HEDDLE_WIDGET_FOLDER
};

typedef struct heddle_port {
  uint32_t size;
  uint32_t flags;
  const char* name;
  const char* type; /* "INT" "FLOAT" "STRING" "BOOLEAN" "TENSOR" "MODEL" "LATENT" ..., "*" for any      */
  const char* doc;
  const heddle_widget* widget; /* NULL: the input has to be linked, unless optional                    */
} heddle_port;
enum {
  HEDDLE_PORT_OPTIONAL = 1u << 0, /* may be neither linked nor given                                   */
  HEDDLE_PORT_LAZY = 1u << 1,     /* computed only when need() asks for it                             */
  HEDDLE_PORT_HOST = 1u << 2,     /* the engine brings the tensors to host memory first, and waits      */
  HEDDLE_PORT_PASS = 1u << 3,     /* the node looks at the record, not at its tensors: they stay        */
  HEDDLE_PORT_SHAPE = 1u << 4,    /* blocks: only shape and type are read, so nothing waits for elements */
  HEDDLE_PORT_HIDDEN = 1u << 5,   /* filled by the engine by type: "PROMPT" (the workflow as JSON text),
                                     "EXTRA_PNGINFO" (JSON text), "UNIQUE_ID" (the node's id)           */
  HEDDLE_PORT_PROMPT = 1u << 8,   /* a text that a model reads: one beyond the engine's limit is refused  */
  HEDDLE_PORT_SEQUENCE = 1u << 7, /* blocks: rows along the last axis but one are tokens, which a group of
                                     devices may divide among its members; see heddle_group              */
  HEDDLE_PORT_NONFINITE = 1u << 9, /* a FLOAT that may be NaN or infinite, even where it has a range    */
  HEDDLE_PORT_LIST = 1u << 6      /* an output that is a list, spread over the readers; an input that
                                     wants the whole list                                              */
};

/* A named place for a weight. Only blocks have slots: a model's build() fills them from the checkpoint. */
typedef struct heddle_slot {
  uint32_t size;
  uint32_t flags;   /* HEDDLE_PORT_OPTIONAL                                                              */
  const char* name; /* "attn.qkv.weight"                                                                 */
  int32_t use;      /* how kernels read it: decides the device form                                      */
} heddle_slot;
enum {
  HEDDLE_USE_VECTOR = 0, /* biases, norm weights, small tables: plain row-major                          */
  HEDDLE_USE_LINEAR = 1, /* the matrix of "linear/1", (out, in)                                          */
  HEDDLE_USE_CONV2D = 2, /* the filter of "conv2d/1", (out, in, height, width)                           */
  HEDDLE_USE_TABLE = 3,  /* the table of "embedding/1", (rows, width)                                    */
  /* Never of a slot; devices are told so of a USE_LINEAR slot whose checkpoint is narrowed (heddle/abi/model.h): rows may
   * be given a scale each, and both operands of the product rounded to f8_e4m3. A device without such products takes it
   * for a USE_LINEAR matrix of f8_e4m3.                                                                 */
  HEDDLE_USE_LINEAR_NARROW = 4
};

typedef struct heddle_infer heddle_infer; /* one question about one workflow node's outputs */

typedef struct heddle_node_desc {
  uint32_t size;
  uint32_t version; /* bump when the same inputs give another result: it is part of the cache key */
  const char* type; /* "KSampler", "demo.hello": unique, never renamed */
  const char* title;
  const char* category; /* "sampling" */
  const char* doc;
  uint32_t flags;
  uint32_t input_count, output_count, weight_count;
  const heddle_port* const* inputs;
  const heddle_port* const* outputs;
  const heddle_slot* const* weights;

  /* An instance belongs to one run at a time. Both NULL for blocks, and for nodes without state. [lane] */
  heddle_status* (*create)(const heddle_host*, void** self);
  void (*destroy)(void* self);

  /* Computes all outputs. Device work goes to the call's stream and need not be finished on return. [lane] */
  heddle_status* (*execute)(void* self, heddle_ctx*);

  /* Optional, may be NULL. */
  heddle_status* (*need)(void* self, heddle_ctx*);                        /* [lane] calls want() for lazy inputs   */
  heddle_status* (*fingerprint)(void* self, heddle_ctx*, uint64_t* hash); /* [lane] outside state: files, time     */
  heddle_status* (*infer)(const heddle_host*, heddle_infer*);             /* [any]  shapes before running          */
} heddle_node_desc;
enum {
  HEDDLE_NODE_SINK = 1u << 0,      /* runs though nobody reads it: saves, shows, sends                  */
  HEDDLE_NODE_IMPURE = 1u << 1,    /* never cached                                                      */
  HEDDLE_NODE_HOST = 1u << 2,      /* wants the host; placement is not asked                            */
  HEDDLE_NODE_DESCRIBES = 1u << 3, /* quick, reads headers or literals: may be run while planning       */
  HEDDLE_NODE_BLOCK = 1u << 4,     /* belongs in model graphs, not in workflows                         */
  HEDDLE_NODE_ANY_INPUT = 1u << 5, /* inputs beyond the declared ones are handed over (extra_*)         */
  HEDDLE_NODE_DEPRECATED = 1u << 6,
  HEDDLE_NODE_EXPERIMENTAL = 1u << 7,
  HEDDLE_NODE_KEEP = 1u << 8       /* its outputs take long to make, are small, and are asked for again:
                                      they may be kept on disk for later processes. What its nodes
                                      and those above them read of files is told by identify()        */
};

/* A block that is placed on several devices is recorded once for each: every recording is one member of the
 * group and sees its share. SEQUENCE: inputs flagged so hold the member's tokens, outputs flagged so have to.
 * ROWS: slots that the model's build() allowed to be divided hold the member's part. Members issue the same collective
 * ops in the same order; on one device they are not issued. */
typedef struct heddle_group {
  uint32_t size;
  int32_t kind;         /* HEDDLE_GROUP_...    */
  uint32_t rank, count; /* this member, of all */
} heddle_group;
enum { HEDDLE_GROUP_NONE = 0, HEDDLE_GROUP_SEQUENCE = 1, HEDDLE_GROUP_ROWS = 2 };
/* Which of all tokens an input holds: [begin, end) of total. */
typedef struct heddle_share {
  uint32_t size;
  int64_t begin, end, total;
} heddle_share;

/* A picture of work under way, for people: 8-bit RGB, row-major, pixels[3 * (y * width + x)] is red. */
typedef struct heddle_preview {
  uint32_t size;
  uint32_t width, height;    /* at least 1                                                             */
  uint32_t step, step_count; /* the step that it shows, from 1, of so many                             */
  const uint8_t* pixels;     /* borrowed until the call returns                                        */
} heddle_preview;

typedef struct heddle_session heddle_session;
typedef struct heddle_completion heddle_completion;

/* Opens a model for a known loop. Records are by the model's input names. */
typedef struct heddle_session_open {
  uint32_t size;
  uint32_t set_count;  /* sets of one step: 1, or 2 for guidance with two conditionings                  */
  uint32_t step_count; /* 1 for a model that is called once                                              */
  const heddle_value* model;
  const heddle_value* const* constants; /* a record per set: the same at every step                       */
  const heddle_value* schedule; /* record of tensors (step_count, ...): known before the loop; NULL: none */
} heddle_session_open;

#define HEDDLE_SERVICE_EXEC "heddle.exec/0"
typedef struct heddle_exec_service {
  const heddle_value* (*input)(heddle_ctx*, uint32_t index);                /* [lane] borrowed; NULL if absent   */
  heddle_status* (*set_output)(heddle_ctx*, uint32_t index, heddle_value*); /* [lane] takes the reference; what a
                                                                             * maker of values gave, NULL too    */
  heddle_tensor* (*weight)(heddle_ctx*, uint32_t slot);                     /* [lane] borrowed; NULL if not given */
  heddle_status* (*want)(heddle_ctx*, const char* input);                   /* [lane] in need(): a lazy input    */

  uint32_t (*extra_count)(heddle_ctx*);                        /* [lane] undeclared inputs (ANY_INPUT)           */
  const char* (*extra_name)(heddle_ctx*, uint32_t index);      /* [lane] */
  const heddle_value* (*extra)(heddle_ctx*, uint32_t index);   /* [lane] borrowed */

  int32_t (*cancelled)(heddle_ctx*);                                  /* [any]                                 */
  void (*progress)(heddle_ctx*, double fraction, const char* note);   /* [any] note may be NULL                */
  void (*wrote)(heddle_ctx*, const char* path, const char* ui_json);  /* [any] a file made for the user; ui_json as
                                                                       * ComfyUI's "ui" entry, or NULL          */
  void (*warn)(heddle_ctx*, const char* message);                     /* [any] shown with the node's name       */
  const char* (*node)(heddle_ctx*);                                   /* [any] "3" or "double.7"                */
  const char* (*device)(heddle_ctx*);                                 /* [any] "cuda:0"                        */
  heddle_dtype (*compute)(heddle_ctx*); /* [any] element type that activations have on this device             */
  void* (*stream)(heddle_ctx*);         /* [lane] native: cudaStream_t; NULL on the CPU and in blocks           */

  /* Device operations. find_op gives a handle for a name such as "linear/1", once; 0: nobody has it. [any] */
  uint32_t (*find_op)(const char* name);
  /* Enqueues. Operands that are optional may be NULL. The device's best kernel is found once per signature. [lane] */
  heddle_status* (*op)(heddle_ctx*, uint32_t op, uint32_t in_count, heddle_tensor* const* in, uint32_t out_count,
                       heddle_tensor* const* out, const void* attrs, uint32_t attrs_size);

  /* A model's block graph as a child run: same planner, same transfers, same memory, same cancellation.
   * step only enqueues, at most one step beyond the running one. sets: a record per set with the inputs that
   * change at every step; out: a record per set, yours. Shapes are those of the first step. [lane] */
  heddle_status* (*open)(heddle_ctx*, const heddle_session_open*, heddle_session** out);
  heddle_status* (*step)(heddle_session*, uint32_t step, const heddle_value* const* sets, heddle_value** out);
  void (*close)(heddle_session*); /* NULL is fine */

  /* For work that is neither on this thread nor on the stream: execute() returns at once, the node is
   * done when complete() is called. ctx stays valid until then. NULL: there is no memory, or ctx is a block's; return an
   * error then. */
  heddle_completion* (*defer)(heddle_ctx*);             /* [lane] */
  void (*complete)(heddle_completion*, heddle_status*); /* [any] takes the status */

  void (*group)(heddle_ctx*, heddle_group* out);                                   /* [lane] none outside of blocks  */
  heddle_status* (*share)(heddle_ctx*, uint32_t input, heddle_share* out);         /* [lane] all of them when alone  */

  /* Previews. Whether anybody looks: 0 unless the run was asked for them, and then nothing should be made. [any] */
  int32_t (*wants_preview)(heddle_ctx*);
  void (*preview)(heddle_ctx*, const heddle_preview*); /* [any] dropped when nobody looks, or when it is no picture */
} heddle_exec_service;

/* Where files are. Paths are UTF-8; results are str values, yours. [any] */
#define HEDDLE_SERVICE_FILES "heddle.files/0"
typedef struct heddle_files_service {
  /* folder as in a FILE widget; fails with the places that were searched. */
  heddle_status* (*find)(heddle_ctx*, const char* folder, const char* name, heddle_value** path);
  /* A new file's place under the output folder ("output") or its "temp": refuses names that leave it. */
  heddle_status* (*output)(heddle_ctx*, const char* kind, heddle_value** folder);
  /* For fingerprint(): what tells a file from every other. Its content, where the answer outlives the process; else its
   * place, size and date, which is quick. Add the file's name below what the node was given, not its path. [lane] */
  heddle_status* (*identify)(heddle_ctx*, const char* path, uint64_t* hash);
  /* The whole of a regular file, its bytes as they are. Refuses folders, devices and pipes, and what has more than most_bytes
   * bytes; what: the kind of file, for errors ("a tokenizer"). */
  heddle_status* (*read)(const heddle_host*, const char* path, uint64_t most_bytes, const char* what, heddle_value** content);
  /* A new file with this content, whole or not at all, and on the disk when this returns. Never in the place of another: created
   * is 0 where the name is taken. */
  heddle_status* (*create)(const heddle_host*, const char* path, heddle_str content, int32_t* created);
} heddle_files_service;

/* A call of a model that execute() is going to make, by shapes: what the planner needs to place and price it. Mirrors
 * heddle_session_open and the records given to step(). */
typedef struct heddle_named_info {
  uint32_t size;
  const char* name;
  heddle_tensor_info info;
} heddle_named_info;
typedef struct heddle_infer_set {
  uint32_t size;
  uint32_t constant_count, step_count;
  const heddle_named_info* const* constants;
  const heddle_named_info* const* steps;
} heddle_infer_set;
typedef struct heddle_infer_call {
  uint32_t size;
  uint32_t set_count, step_count, schedule_count;
  const heddle_value* model;
  const heddle_infer_set* const* sets;
  const heddle_named_info* const* schedule;
} heddle_infer_call;

/* Answering infer(): what is known of the inputs, what the outputs will be. path names a part of a record or a list,
 * by keys and indices: "samples", "0.cross_attn", "positive.1.pooled_output"; "" is the value itself. [any] */
#define HEDDLE_SERVICE_INFER "heddle.infer/0"
typedef struct heddle_infer_service {
  const heddle_value* (*value)(heddle_infer*, uint32_t input); /* a literal, or a value made while planning; NULL: unknown */
  int32_t (*in)(heddle_infer*, uint32_t input, const char* path, heddle_tensor_info* out); /* 0: unknown */
  heddle_status* (*out)(heddle_infer*, uint32_t output, const char* path, const heddle_tensor_info*);
  void (*cost)(heddle_infer*, double flops, double bytes, uint64_t scratch_bytes);
  heddle_status* (*call)(heddle_infer*, const heddle_infer_call*); /* in the order execute() makes them; copied */
  /* A part of an input's value that is known before running; borrowed. NULL: unknown, or there is no such part. */
  const heddle_value* (*part)(heddle_infer*, uint32_t input, const char* path);
  /* Tells a part of an output's value, where the whole of it is not known yet; shared. */
  heddle_status* (*known)(heddle_infer*, uint32_t output, const char* path, const heddle_value*);
  /* Every tensor of this output is an input's, or a part of one: it takes no memory of its own. */
  heddle_status* (*shares)(heddle_infer*, uint32_t output);
  /* What the node works on in host memory, wherever it is placed, besides the scratch_bytes of cost(). */
  void (*host_scratch)(heddle_infer*, uint64_t bytes);
} heddle_infer_service;

#ifdef __cplusplus
}
#endif
#endif
