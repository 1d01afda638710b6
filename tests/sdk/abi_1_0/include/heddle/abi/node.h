/* heddle/abi/node.h - declare a node. What it may do when it runs: call.h and files.h; before it
 * runs: infer.h.
 *
 * There are two kinds of call. A workflow node's execute() runs with real tensors: ops are enqueued
 * at once. A block (a node of a model's graph) is traced: its execute() is called with tensors that
 * have a shape but no data, the ops it issues become the model's program, and the engine lays out
 * memory, moves weights and replays that program, step after step, without calling the block again.
 * So a block is a pure function of shapes and literals, has no instance (create is NULL), and needs
 * no separate cost function: shapes, FLOPs, bytes and scratch are read off the trace. */
#ifndef HEDDLE_ABI_NODE_H
#define HEDDLE_ABI_NODE_H

#include "call.h"
#include "files.h"
#include "infer.h"
#include "validate.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HEDDLE_NODES                                                           \
  "heddle.nodes/0" /* heddle_plugin.provide -> heddle_list of heddle_node_desc \
                    */

/* How a front end edits an unlinked input, and which values the engine accepts for it.
 *
 * What a node may rely on, in execute(), need(), fingerprint() and infer(), whoever made the value
 * (a literal, a link, a cache, a program that embeds the engine): a value of a port of the type
 * INT, FLOAT, STRING or BOOLEAN is of that kind (FLOAT takes integers, too); a number lies within
 * min and max; a FLOAT is finite (but see HEDDLE_PORT_NONFINITE); the text of a CHOICE is one of
 * its choices; of the last two, what its validator judges is left to that (validate.h). The
 * engine refuses anything else and names the node, the input and the value. It says nothing of how
 * two inputs go together, nor whether a product of them fits (heddle/checked.hpp), nor whether the
 * file of a FILE is there. */
typedef struct heddle_widget {
  uint32_t size;
  int32_t kind;
  double number;      /* default, for numbers and toggles                                         */
  const char* text;   /* default, for text, choices and files                                     */
  double min, max;    /* both inclusive, when min < max; else an INT ranges over all of int64, a
                         SEED over all of uint64                                                   */
  double step, round; /* for front ends                                                           */
  const char* const* choices; /* NULL-terminated; of a FILE: what is there without a file;
                                 "NAME|FOLDER/BEGINNING|...": NAME, where each FOLDER has a file
                                 whose name begins so                                          */
  const char* source; /* CHOICE: a registry kind whose descs begin {uint32 size; const char* name};
                         FILE, FOLDER: the folder under the model directories, or "input" */
  const char* extra; /* JSON object merged into the options of /object_info, or NULL              */
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
  const char*
      type; /* "INT" "FLOAT" "STRING" "BOOLEAN" "TENSOR" "MODEL" "LATENT" ..., "*" for any      */
  const char* doc;
  const heddle_widget* widget; /* NULL: the input has to be linked, unless optional */
} heddle_port;
enum {
  HEDDLE_PORT_OPTIONAL = 1u << 0, /* may be neither linked nor given */
  HEDDLE_PORT_LAZY = 1u << 1,     /* computed only when need() asks for it     */
  HEDDLE_PORT_HOST = 1u << 2, /* the engine brings the tensors to host memory first, and waits */
  HEDDLE_PORT_PASS = 1u << 3, /* the node looks at the record, not at its tensors: they stay */
  HEDDLE_PORT_SHAPE =
      1u << 4, /* blocks: only shape and type are read, so nothing waits for elements */
  HEDDLE_PORT_HIDDEN =
      1u << 5, /* filled by the engine by type: "PROMPT" (the workflow as JSON text),
                  "EXTRA_PNGINFO" (JSON text), "UNIQUE_ID" (the node's id); of other types, as
                  "DYNPROMPT" (see heddle.workflow/0), it is absent          */
  HEDDLE_PORT_PROMPT =
      1u << 8, /* a text that a model reads: one beyond the engine's limit is refused  */
  HEDDLE_PORT_SEQUENCE =
      1u << 7, /* blocks: rows along the last axis but one are tokens, which a group of
                  devices may divide among its ranks; see heddle_group              */
  HEDDLE_PORT_NONFINITE =
      1u << 9, /* a FLOAT that may be NaN or infinite, even where it has a range    */
  HEDDLE_PORT_LINK =
      1u << 10, /* gets no value but the link itself, a list of the id and the number of the output
                   (ComfyUI's rawLink); the node that it comes from runs first all the same       */
  HEDDLE_PORT_LIST =
      1u << 6 /* workflow nodes: an output that is a list, a value of HEDDLE_KIND_LIST, whose
                 readers are called once for each element; or an input that wants the whole list.
                 A node with such an input is called once: its other inputs get the first element
                 of a list, and what is no list comes as a list of one where one is wanted */
};

/* A named place for a weight. Only blocks have slots: a model's build() fills them from the
 * checkpoint. */
typedef struct heddle_slot {
  uint32_t size;
  uint32_t flags;   /* HEDDLE_PORT_OPTIONAL   */
  const char* name; /* "attn.qkv.weight" */
  heddle_use use;
} heddle_slot;

typedef struct heddle_node_desc {
  uint32_t size;
  uint32_t version; /* bump when the same inputs give another result: it is part of the cache key */
  const char* type; /* "KSampler", "demo.hello": unique, never renamed */
  const char* title;    /* this and the next two are for people and may be NULL */
  const char* category; /* "sampling" */
  const char* doc;
  uint32_t flags;
  uint32_t input_count, output_count, weight_count;
  const heddle_port* const* inputs;
  const heddle_port* const* outputs;
  const heddle_slot* const* weights;

  /* Computes all outputs. Device work goes to the call's stream and need not be finished on return.
   * [call] */
  heddle_status* (*execute)(void* self, heddle_ctx*);

  /* From here on optional, may be NULL. */

  /* An instance belongs to one run at a time. Both or none; none for blocks, and for nodes without
   * state. [call] */
  heddle_status* (*create)(const heddle_host*, void** self);
  void (*destroy)(void* self);
  heddle_status* (*need)(void* self, heddle_ctx*); /* [call] calls want() for lazy inputs   */
  /* Outside state: files, time. Once in a run, with the literals alone: links are absent. [call] */
  heddle_status* (*fingerprint)(void* self, heddle_ctx*, uint64_t* hash);
  heddle_status* (*infer)(const heddle_host*, heddle_infer*); /* [any]  shapes before running */
  const heddle_validator* validator; /* judges literals before anything runs (validate.h)   */
} heddle_node_desc;
/* A fingerprint that equals none, itself neither: the node, and what reads it, runs every time. So
 * it does when fingerprint() fails. */
#define HEDDLE_FINGERPRINT_NEVER UINT64_MAX
enum {
  HEDDLE_NODE_SINK = 1u << 0,      /* runs though nobody reads it: saves, shows, sends      */
  HEDDLE_NODE_IMPURE = 1u << 1,    /* never cached    */
  HEDDLE_NODE_HOST = 1u << 2,      /* wants the host; placement is not asked      */
  HEDDLE_NODE_DESCRIBES = 1u << 3, /* quick, reads headers or literals: may be run while planning */
  HEDDLE_NODE_BLOCK = 1u << 4,     /* belongs in model graphs, not in workflows     */
  HEDDLE_NODE_ANY_INPUT = 1u << 5, /* inputs beyond the declared ones are handed over (extra_*) */
  HEDDLE_NODE_DEPRECATED = 1u << 6,
  HEDDLE_NODE_EXPERIMENTAL = 1u << 7,
  HEDDLE_NODE_EXPANDS = 1u << 9,     /* may ask for new nodes (heddle.expansion/0)   */
  HEDDLE_NODE_LOOP_START = 1u << 10, /* what stands between a start and its end runs only as */
  HEDDLE_NODE_LOOP_END = 1u << 11,   /* the start asks for it: engine/graph/loops.h    */
  HEDDLE_NODE_PASS_EXTRA = 1u << 12, /* undeclared inputs are as with HEDDLE_PORT_PASS */
  HEDDLE_NODE_TILES = 1u << 13,      /* makes a call of a model that finds no room again in tiles: a
                                      * lack of memory is no reason to refuse it before it runs */
  HEDDLE_NODE_CACHE_ON_DISK = 1u << 8 /* its outputs take long to make, are small, and are asked for
                                again: they may be kept on disk for later processes. What its nodes
                                and those above them read of files is told by identify()        */
};

#ifdef __cplusplus
}
#endif
#endif
