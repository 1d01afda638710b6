/* heddle/engine.h - run workflows from a program in C, or in whatever calls C. Link with libheddle.
 *
 * The C++ face, heddle/engine.hpp, says more of what each thing does. Rules of this one:
 *   1. Every function may be called by any thread. A handle is freed once, by its own _free, which
 *      takes NULL, too.
 *   2. A function that can fail returns 0 or a heddle_code (abi/base.h), and then puts a text of
 *      what failed, where, and what to do into *error: free it with heddle_text_free(). `error` may
 *      be NULL. Results are written on success only.
 *   3. Structs given begin with their own size and grow at the end; zero means the default, also
 *      for lists and their counts.
 *      The inputs of a call that takes heddle_start_options are taken, also when it fails: the
 *      deleters of their tensors are called. All but in one case: when the `size` of the options is
 *      wrong nothing in them is known, and the tensors stay the caller's. An input whose own size
 *      ends before `tensor` has none.
 *   4. Strings are UTF-8 and NUL-terminated unless they are a heddle_str. Those given are copied.
 *      Those of an event live until the observer returns; those returned as char* are yours:
 *      heddle_text_free(). */
#ifndef HEDDLE_ENGINE_H
#define HEDDLE_ENGINE_H

#include "heddle/abi/value.h"
#include "heddle/dlpack.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct heddle_engine heddle_engine;
typedef struct heddle_workflow heddle_workflow;
typedef struct heddle_run heddle_run;
typedef struct heddle_results heddle_results;
typedef struct heddle_run_checkpoint heddle_run_checkpoint;

/* A run, by its number: that of no other run in this process. */
typedef uint64_t heddle_run_number;
#define HEDDLE_NO_RUN ((heddle_run_number)0)

/* heddle_run_wait: the time was up first. Not a failure: *error stays as it was. */
enum { HEDDLE_STILL_RUNNING = 100 };

typedef struct heddle_option {
  const char* key;
  const char* value;
} heddle_option;

/* How models may be divided over devices where nobody says how. EXACT: only in ways that give the
 * same bytes as one device of the kind. ROUNDING: also in such that add up in another order. */
typedef int32_t heddle_fidelity;
enum {
  HEDDLE_FIDELITY_DEFAULT = 0, /* of a run: the engine's; of an engine: exact */
  HEDDLE_FIDELITY_EXACT = 1,
  HEDDLE_FIDELITY_ROUNDING = 2
};

/* Over 15 members: what an embedder may choose, each by itself and with a default. */
typedef struct heddle_engine_options {
  uint32_t size;
  uint32_t threads;               /* of a CPU device; 0: all cores                         */
  const char* default_plugin_dir; /* NULL: what ships, the user's, HEDDLE_PLUGIN_PATH      */
  const char* input_dir;          /* NULL: that of comfyui_dir, else "input"               */
  const char* output_dir;         /* NULL: that of comfyui_dir, else "output"              */
  const char* costs;              /* a file of measured costs to place by                  */
  const char* const* plugin_dirs; /* searched after the default one                        */
  size_t plugin_dir_count;
  const char* const* model_dirs;
  size_t model_dir_count;
  const char* const* devices; /* "auto", "cuda:0", a UUID, a PCI address; none: "auto"     */
  size_t device_count;
  const heddle_option* compute; /* device or kind -> "f32", "bf16", "fp16"               */
  size_t compute_count;
  const heddle_option* budgets; /* device or kind -> "14GiB", "60%", bytes in digits     */
  size_t budget_count;
  const heddle_option* device_options; /* device kind -> JSON object                       */
  size_t device_option_count;
  uint64_t cache_bytes;      /* of outputs kept between runs; 0: a quarter of memory  */
  int32_t reference_kernels; /* 1: the plain loops alone                              */
  /* Of the process: the newest engine that gives one has it until it is freed. `log_user`,
   * `allocator_user`: passed on. Called by any thread, several at once. What allocate gave goes
   * back through free however late: it outlives every tensor. */
  void (*log)(void* log_user, heddle_level level, heddle_str message);
  void* log_user;
  void* (*allocate)(void* allocator_user, size_t bytes,
                    size_t alignment); /* NULL result: memory is out */
  void (*free)(void* allocator_user, void* data, size_t bytes);
  void* allocator_user;
  const heddle_option* reserves; /* device, kind or "host" -> to be left free for others  */
  size_t reserve_count;
  const char* host_budget; /* of host memory, CPU devices included; NULL: half less 2 GB   */
  const char* pinned;      /* of host memory, pinned at most; NULL: half of the host budget */
  double idle_seconds;     /* a model not used for so long is unloaded; 0: never           */
  uint64_t prompt_limit;   /* bytes of a text that a model reads; 0: 64 KiB                */
  const char* comfyui_dir; /* a ComfyUI folder: its models, input, output and extra paths  */
  const char* host_floor;  /* of host memory, that a run begins with at least; NULL: 64 MiB */
  heddle_fidelity fidelity;
  const char* const* isolate; /* plugins that run in worker processes: file names or ids   */
  size_t isolate_count;
  double isolate_seconds;          /* a call of theirs that works longer is ended; 0: no limit  */
  const char* isolate_memory;      /* address space of a worker: "2GiB"; NULL: no limit         */
  int32_t isolate_sandbox;         /* 1: workers have no network and start no programs          */
  const char* const* python_nodes; /* folders of packs of nodes in Python, or packs        */
  size_t python_node_count;
  const char* python; /* the interpreter; NULL: that of $VIRTUAL_ENV, else python3 of $PATH */
  const char* attention_dtype; /* "fp8_e4m3fn": attention in 8 bits, where a device has it; NULL,
                                * "default": the compute type */
  const char* linear_dtype; /* "int8": matrices of int8 files times x in 8 bits, where a device has
                             * it; NULL, "default": the compute type */
} heddle_engine_options;

/* What a run tells. */
typedef int32_t heddle_run_event_kind;
enum {
  HEDDLE_NODE_STARTED = 0,
  HEDDLE_NODE_PROGRESS = 1,
  HEDDLE_NODE_DONE = 2,
  HEDDLE_NODE_CACHED = 3,
  HEDDLE_FILE_WRITTEN = 4,
  HEDDLE_WARNING = 5,
  HEDDLE_NODE_WAITING = 6, /* for its turn to write: heddle_start_options.writes_after */
  HEDDLE_PREVIEW = 7,      /* only with heddle_start_options.previews */
  HEDDLE_NODE_SHOWS = 8,   /* text: JSON of all that the node shows, before it is done or cached */
  HEDDLE_NODE_BLOCKED = 9, /* text: the message of an execution blocker that a call has met */
  HEDDLE_RUN_WAITING = 10, /* not begun: for `bytes` of a device or "host"; text: who holds them */
  HEDDLE_CHECKPOINT_WRITTEN = 11, /* text: path of the file */
  HEDDLE_PICTURE_SENT = 12        /* text: a PNG file, sent instead of saved; nobody keeps it */
};
/* Over 15 members: an event of any kind, which fills in its own. */
typedef struct heddle_run_event {
  uint32_t size;
  heddle_run_event_kind kind;
  heddle_run_number run; /* heddle_run_id() */
  heddle_str node;       /* id; empty for a warning about the run */
  heddle_str class_type;
  heddle_str title;
  heddle_str device;
  double fraction; /* progress: 0 to 1 */
  double seconds;  /* done */
  heddle_str text; /* note, path of the file, message */
  /* preview: height x width x 3 bytes, red, green, blue, row-major, of step `preview_step` (from
   * 1); they live until the observer returns */
  const uint8_t* preview_pixels;
  uint32_t preview_width, preview_height;
  uint32_t preview_step, preview_step_count;
  uint64_t bytes; /* waiting */
} heddle_run_event;

/* A value for one input, by kind: HEDDLE_KIND_BOOL and _INT use integer, _FLOAT number, _STR text,
 * _TENSOR tensor. With a field the input gets a record, of all tensors that are given to it with a
 * field each ("samples" for a LATENT). */
typedef struct heddle_run_input {
  uint32_t size;
  heddle_kind kind;
  const char* name; /* NODE.INPUT */
  int64_t integer;
  double number;
  const char* text;
  DLManagedTensor* tensor; /* host memory, row-major, not copied: nobody changes it until its
                              deleter is called */
  const char* field;
} heddle_run_input;

/* Over 15 members: what a run may be asked for, each by itself and with a default. */
typedef struct heddle_start_options {
  uint32_t size;
  /* On one of the run's threads, one call at a time; keep it short. It may pause and cancel runs,
   * not wait for its own. */
  void (*observer)(void* observer_user, const heddle_run_event*);
  void* observer_user;
  const char* const* fetch; /* NODE.OUTPUT: values wanted in the results */
  size_t fetch_count;
  const heddle_run_input* const* inputs; /* pointers, so that the struct may grow */
  size_t input_count;
  /* heddle_run_id() of a run whose files are written before this one's; HEDDLE_NO_RUN: of none */
  heddle_run_number writes_after;
  int32_t among_many;         /* 1: one of many runs, which spread over the devices */
  int32_t previews;           /* 1: the observer gets pictures of work under way; 2: by TAESD's
                                 decoder where its file is in models/vae_approx */
  const char* trace;          /* write a timeline of the run here; NULL: none */
  int32_t priority;           /* of runs that wait for memory the highest begins first; runs of a
                                 lower one give theirs back for it, and go on later */
  double memory_wait_seconds; /* for memory that other programs hold; then weights are streamed */
  /* The run is kept in this file as it goes, and can go on from it in another process
   * (heddle_engine_resume); it is removed when the run has succeeded. NULL: none. */
  const char* checkpoint;
  uint32_t checkpoint_every;   /* steps of samplers; 0: 1 */
  const char* checkpoint_note; /* kept with it; NULL: none */
  heddle_fidelity fidelity;
} heddle_start_options;

HEDDLE_EXPORT void heddle_text_free(char*);

/* NULL options: defaults. */
HEDDLE_EXPORT int32_t heddle_engine_make(const heddle_engine_options*, heddle_engine** out,
                                         char** error);
/* Cancels its runs and waits for them; free results and runs first. */
HEDDLE_EXPORT void heddle_engine_free(heddle_engine*);
HEDDLE_EXPORT int32_t heddle_engine_load(heddle_engine*, const char* path, heddle_workflow** out,
                                         char** error);
HEDDLE_EXPORT int32_t heddle_engine_parse(heddle_engine*, const char* json, const char* name,
                                          heddle_workflow** out, char** error);
/* The API format of a workflow in either form, or in a picture, as JSON. object_info: definitions
 * as ComfyUI's /object_info serves them, as texts, for classes that no plugin brings; NULL: none.
 * Fails with everything that cannot be converted, a line each. */
HEDDLE_EXPORT int32_t heddle_engine_convert(heddle_engine*, const char* json, size_t json_size,
                                            const char* name, const char* const* object_info,
                                            size_t object_info_count, char** out, char** error);
/* What start would do with these options (NULL: none), without running it; only their inputs
 * count. */
HEDDLE_EXPORT int32_t heddle_engine_plan(heddle_engine*, const heddle_workflow*,
                                         const heddle_start_options*, int32_t as_json, char** out,
                                         char** error);
/* All problems of a workflow with these inputs, a line each: what keeps it from running, and what
 * does not. Texts without a line are empty; each may be NULL when it is not wanted. */
HEDDLE_EXPORT int32_t heddle_engine_check(heddle_engine*, const heddle_workflow*,
                                          const heddle_start_options*, char** errors,
                                          char** warnings, char** error);
HEDDLE_EXPORT int32_t heddle_engine_start(heddle_engine*, const heddle_workflow*,
                                          const heddle_start_options*, heddle_run** out,
                                          char** error);

/* A checkpoint of a run. Fails for a file that is torn or none. */
HEDDLE_EXPORT int32_t heddle_run_checkpoint_load(const char* path, heddle_run_checkpoint** out,
                                                 char** error);
HEDDLE_EXPORT int32_t heddle_run_checkpoint_note(const heddle_run_checkpoint*, char** out,
                                                 char** error);
HEDDLE_EXPORT void heddle_run_checkpoint_free(heddle_run_checkpoint*);
/* Goes on with the run of the checkpoint, with the inputs that it was begun with. Fails for what
 * would give another picture: another build of a plugin, another model file, another kind of
 * device. */
HEDDLE_EXPORT int32_t heddle_engine_resume(heddle_engine*, const heddle_run_checkpoint*,
                                           const heddle_start_options*, heddle_run** out,
                                           char** error);

/* Evicts what nobody uses now. device: a name or a kind, NULL: all. model: as the devices tell
 * it, or its first word; NULL: everything, cached values and free memory of pools, too. A model
 * that is being loaded is waited for, ten seconds at most, then fails with HEDDLE_CANCELLED.
 * `bytes` that went back, may be NULL. */
HEDDLE_EXPORT int32_t heddle_engine_unload(heddle_engine*, const char* device, const char* model,
                                           uint64_t* bytes, char** error);

/* Forgets the results that are kept for later runs, but those in cache_dir: their nodes run again.
 * `bytes` that they had, may be NULL. */
HEDDLE_EXPORT int32_t heddle_engine_drop_cached(heddle_engine*, uint64_t* bytes, char** error);

/* Which devices get work. device: "auto", "cuda", "cuda:1", a UUID or a PCI address. One that is
 * disabled gets nothing new; runs that have begun finish there; what it holds stays. */
HEDDLE_EXPORT int32_t heddle_engine_enable(heddle_engine*, const char* device, char** error);
HEDDLE_EXPORT int32_t heddle_engine_disable(heddle_engine*, const char* device, char** error);
/* Disables it, and gives back all that it holds when the runs that have it are over. Those that are
 * paused release what they have, as heddle_run_pause_and_release does. Waits until then, or
 * `milliseconds` (< 0: as long as it takes): HEDDLE_STILL_RUNNING, when it is not drained
 * yet or was enabled meanwhile. */
HEDDLE_EXPORT int32_t heddle_engine_drain(heddle_engine*, const char* device, int64_t milliseconds,
                                          char** error);
/* The devices, as `heddle devices --json` prints them. */
HEDDLE_EXPORT int32_t heddle_engine_devices(heddle_engine*, char** out, char** error);

/* One workflow is changed by one thread at a time. A run has its own copy. */
HEDDLE_EXPORT int32_t heddle_workflow_set(heddle_workflow*, const char* input, const char* value,
                                          char** error);
HEDDLE_EXPORT int32_t heddle_workflow_place(heddle_workflow*, const char* node, const char* device,
                                            char** error);
HEDDLE_EXPORT int32_t heddle_workflow_parallel(heddle_workflow*, const char* node, const char* mode,
                                               char** error);
/* Run these output nodes, which save or show something, and what they need; none: all of them. */
HEDDLE_EXPORT int32_t heddle_workflow_only(heddle_workflow*, const char* const* nodes, size_t count,
                                           char** error);
HEDDLE_EXPORT int32_t heddle_workflow_text(const heddle_workflow*, char** out, char** error);
HEDDLE_EXPORT void heddle_workflow_free(heddle_workflow*);

/* Never HEDDLE_NO_RUN. */
HEDDLE_EXPORT heddle_run_number heddle_run_id(const heddle_run*);
HEDDLE_EXPORT void heddle_run_cancel(heddle_run*);
/* No node and no step of a model begins any more; those that have begun end. */
HEDDLE_EXPORT void heddle_run_pause(heddle_run*);
/* The same, and the memory of the run is given back: samplers stop at their next step, and their
 * state is kept in host memory. resume places it anew. */
HEDDLE_EXPORT void heddle_run_pause_and_release(heddle_run*);
HEDDLE_EXPORT void heddle_run_resume(heddle_run*);
/* milliseconds < 0: as long as it takes. `out` may be NULL; may be called again, each time for
 * results of its own. */
HEDDLE_EXPORT int32_t heddle_run_wait(heddle_run*, int64_t milliseconds, heddle_results** out,
                                      char** error);
/* Cancels it and waits. */
HEDDLE_EXPORT void heddle_run_free(heddle_run*);

HEDDLE_EXPORT size_t heddle_results_file_count(const heddle_results*);
/* Lives as long as the results; NULL: there is none. */
HEDDLE_EXPORT const char* heddle_results_file(const heddle_results*, size_t index);
/* What nodes show, as JSON in the shape of "outputs" in ComfyUI's history: node id -> {"images":
 * [...], "text": [...]}. Nodes that did not run because nothing had changed are among them. */
HEDDLE_EXPORT int32_t heddle_results_ui(const heddle_results*, char** out, char** error);
/* Of values named in `fetch`. field: of a record, or NULL. */
HEDDLE_EXPORT int32_t heddle_results_text(const heddle_results*, const char* output, char** out,
                                          char** error);
HEDDLE_EXPORT int32_t heddle_results_shape(const heddle_results*, const char* output,
                                           const char* field, int64_t shape[HEDDLE_MAX_RANK],
                                           uint32_t* rank, char** error);
/* Copies an f32 tensor, row-major, into room for `count` floats, which is as many as it has. */
HEDDLE_EXPORT int32_t heddle_results_floats(const heddle_results*, const char* output,
                                            const char* field, float* out, size_t count,
                                            char** error);
/* A row-major copy in host memory: yours, call its deleter. It may outlive everything here. */
HEDDLE_EXPORT int32_t heddle_results_tensor(const heddle_results*, const char* output,
                                            const char* field, DLManagedTensor** out, char** error);
HEDDLE_EXPORT void heddle_results_free(heddle_results*);

#ifdef __cplusplus
}
#endif
#endif
