/* A program in C11 that embeds the engine: values in and out, events, a log and an allocator of its
 * own. CTest runs it with the folders of the plugins; it exits with 0 when everything is as it has
 * to be. */
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <heddle/engine.h>

static const char workflow[] =
    "{\"greet\": {\"class_type\": \"demo.hello\", \"inputs\": {\"name\": \"heddle\", \"times\": "
    "1}},"
    " \"count\": {\"class_type\": \"demo.count_bytes\", \"inputs\": {\"text\": [\"greet\", 0]}},"
    " \"number\": {\"class_type\": \"test.keep\", \"inputs\": {\"value\": [\"count\", 0]}},"
    " \"ramp\": {\"class_type\": \"test.ramp\", \"inputs\": {\"start\": 1}},"
    " \"tensor\": {\"class_type\": \"test.keep\", \"inputs\": {\"value\": [\"ramp\", 0]}},"
    " \"show\": {\"class_type\": \"PreviewAny\", \"inputs\": {\"source\": [\"greet\", 0]}}}";

static int faults;

static void expect(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "embed.c: not so: %s\n", what);
  ++faults;
}

/* For calls that must not fail. */
static void done(int32_t code, char** error) {
  if (code == 0) return;
  fprintf(stderr, "embed.c: error %d: %s\n", (int)code, *error != NULL ? *error : "no text");
  exit(1);
}

/* What the program holds the first node of a run with, until it has paused the run. */
struct gate {
  atomic_int closed, reached;
};

struct counts {
  uint64_t run;
  struct gate* gate; /* NULL: none */
  atomic_int started;
  int events, of_other_runs, node_done, previews, shown;
  atomic_long pieces_out, pieces;
};

static void observe(void* user, const heddle_run_event* event) {
  struct counts* counts = user;
  if (counts->events++ == 0) counts->run = event->run;
  if (counts->run != event->run) ++counts->of_other_runs;
  if (event->kind == HEDDLE_NODE_DONE) ++counts->node_done;
  if (event->kind == HEDDLE_NODE_SHOWS) {
    ++counts->shown;
    expect(strncmp(event->text.data, "{\"text\":[\"Hello, you! ", 22) == 0, "what the event shows");
  }
  if (event->kind == HEDDLE_NODE_STARTED) {
    ++counts->started;
    if (counts->gate != NULL) {
      counts->gate->reached = 1;
      while (counts->gate->closed) sched_yield();
    }
  }
  if (event->kind == HEDDLE_PREVIEW) {
    ++counts->previews;
    expect(event->preview_width == 2 && event->preview_height == 1, "the preview's size");
    expect(event->preview_step == (uint32_t)counts->previews && event->preview_step_count == 3,
           "the preview's step");
    expect(event->preview_pixels[5] == 'a' + counts->previews, "the preview's pixels");
  } else {
    expect(event->preview_pixels == NULL, "nothing else has pixels");
  }
}

static void* allocate(void* user, size_t bytes, size_t alignment) {
  struct counts* counts = user;
  void* data = aligned_alloc(alignment, bytes);
  if (data == NULL) return NULL;
  ++counts->pieces_out;
  ++counts->pieces;
  return data;
}

static void give_back(void* user, void* data, size_t bytes) {
  struct counts* counts = user;
  (void)bytes;
  --counts->pieces_out;
  free(data);
}

static void be_told(void* user, heddle_level level, heddle_str message) {
  (void)user, (void)level, (void)message;
}

static void tensor_comes_back(DLManagedTensor* tensor) { ++*(int*)tensor->manager_ctx; }

static const char picture[] =
    "{\"draw\": {\"class_type\": \"test.draw\", \"inputs\": {}},"
    " \"end\": {\"class_type\": \"test.keep\", \"inputs\": {\"value\": [\"draw\", 0]}}}";

/* Numbers that are added up, a node each. */
static heddle_workflow* chain_of(heddle_engine* engine, int nodes, int first) {
  char* const flow = malloc(100 * (size_t)(nodes + 2));
  char* error = NULL;
  heddle_workflow* parsed = NULL;
  int length =
      sprintf(flow, "{\"0\": {\"class_type\": \"test.add\", \"inputs\": {\"a\": %d}}", first);
  for (int i = 1; i < nodes; ++i)
    length += sprintf(flow + length,
                      ", \"%d\": {\"class_type\": \"test.add\", \"inputs\": {\"a\": [\"%d\", 0]}}",
                      i, i - 1);
  sprintf(flow + length,
          ", \"end\": {\"class_type\": \"test.keep\", \"inputs\": {\"value\": [\"%d\", 0]}}}",
          nodes - 1);
  done(heddle_engine_parse(engine, flow, "chain", &parsed, &error), &error);
  free(flow);
  return parsed;
}

/* A workflow as ComfyUI's interface saves it, with a class that only the definitions know. */
static void convert_saved(heddle_engine* engine) {
  const char* saved =
      "{\"nodes\": [{\"id\": 1, \"type\": \"test.add\", \"widgets_values\": [2, 3]},"
      "{\"id\": 2, \"type\": \"other\", \"widgets_values\": [5]}], \"links\": []}";
  const char* definitions[] = {
      "{\"other\": {\"input\": {\"required\": {\"n\": [\"INT\", {}]}}, \"output\": []}}"};
  char *text = NULL, *error = NULL;
  done(heddle_engine_convert(engine, saved, strlen(saved), "saved", definitions, 1, &text, &error),
       &error);
  expect(strstr(text, "\"n\": 5") != NULL && strstr(text, "\"b\": 3") != NULL,
         "widget values get their names");
  heddle_text_free(text);
  expect(heddle_engine_convert(engine, saved, strlen(saved), NULL, NULL, 0, &text, &error) != 0 &&
             strstr(error, "node '2' (other)") != NULL,
         "a node of an unknown class is named");
  heddle_text_free(error);
}

/* Values in by name, values out by name. */
static void give_and_take(heddle_engine* engine, heddle_workflow* flow, struct counts* counts) {
  const char* keep[] = {"number.out", "tensor.out"};
  float floats[6] = {1, 2, 3, 4, 5, 6}, got[6] = {0};
  int64_t sizes[] = {2, 3}, shape[HEDDLE_MAX_RANK] = {0};
  uint32_t rank = 0;
  int came_back = 0;
  char *error = NULL, *text = NULL;
  heddle_run* run = NULL;
  heddle_results* results = NULL;
  DLManagedTensor mine = {{floats, {HEDDLE_DL_CPU, 0}, 2, {HEDDLE_DL_FLOAT, 32, 1}, sizes, NULL, 0},
                          &came_back,
                          tensor_comes_back};
  DLManagedTensor* theirs = NULL;
  heddle_run_input name = {
      .size = sizeof name, .kind = HEDDLE_KIND_STR, .name = "greet.name", .text = "you"};
  heddle_run_input tensor = {
      .size = sizeof tensor, .kind = HEDDLE_KIND_TENSOR, .name = "tensor.value", .tensor = &mine};
  const heddle_run_input* inputs[] = {&name, &tensor};
  heddle_start_options start = {.size = sizeof start,
                                .observer = observe,
                                .observer_user = counts,
                                .fetch = keep,
                                .fetch_count = 2,
                                .inputs = inputs,
                                .input_count = 2};
  done(heddle_engine_start(engine, flow, &start, &run, &error), &error);
  done(heddle_run_wait(run, -1, &results, &error), &error);
  expect(counts->run == heddle_run_id(run) && counts->of_other_runs == 0, "events say their run");
  expect(counts->node_done == 5, "five nodes ran: not the one whose tensor was given");
  done(heddle_results_ui(results, &text, &error), &error);
  expect(counts->shown == 1 &&
             strcmp(text, "{\"show\":{\"text\":[\"Hello, you! Hello, you! \"]}}") == 0,
         "the results have what a node shows");
  heddle_text_free(text);
  done(heddle_results_text(results, "number.out", &text, &error), &error);
  expect(strcmp(text, "24") == 0, "\"Hello, you! \" twice has 24 bytes");
  heddle_text_free(text);
  done(heddle_results_shape(results, "tensor.out", NULL, shape, &rank, &error), &error);
  expect(rank == 2 && shape[0] == 2 && shape[1] == 3, "the tensor's shape");
  done(heddle_results_floats(results, "tensor.out", NULL, got, 6, &error), &error);
  expect(memcmp(got, floats, sizeof got) == 0, "the tensor's elements");
  done(heddle_results_tensor(results, "tensor.out", NULL, &theirs, &error), &error);
  expect(theirs->dl_tensor.data != floats &&
             memcmp(theirs->dl_tensor.data, floats, sizeof floats) == 0,
         "a copy of them");
  expect(counts->pieces > 0 && counts->pieces_out > 0, "the copy lies in memory of ours");
  theirs->deleter(theirs);
  expect(heddle_results_file_count(results) == 0 && heddle_results_file(results, 0) == NULL,
         "nothing was written");
  expect(heddle_results_floats(results, "tensor.out", NULL, got, 5, &error) ==
                 HEDDLE_INVALID_ARGUMENT &&
             strstr(error, "has 6 elements") != NULL,
         "too little room is refused");
  heddle_text_free(error);
  expect(came_back == 0, "the results hold the tensor");
  heddle_results_free(results);
  heddle_run_free(run);
  expect(came_back == 1, "the tensor comes back once");
}

/* One of its outputs alone. */
static void run_in_part(heddle_engine* engine) {
  static const char* const show = "show";
  static const char* const lost = "lost";
  char *error = NULL, *text = NULL;
  heddle_workflow* flow = NULL;
  done(heddle_engine_parse(engine, workflow, NULL, &flow, &error), &error);
  done(heddle_workflow_only(flow, &show, 1, &error), &error);
  done(heddle_engine_plan(engine, flow, NULL, 0, &text, &error), &error);
  expect(strstr(text, "greet") != NULL && strstr(text, "ramp") == NULL, "a plan of one output");
  heddle_text_free(text);
  expect(heddle_workflow_only(flow, &lost, 1, &error) == HEDDLE_NOT_FOUND, "no such output");
  heddle_text_free(error), error = NULL;
  done(heddle_workflow_only(flow, NULL, 0, &error), &error);
  done(heddle_engine_plan(engine, flow, NULL, 0, &text, &error), &error);
  expect(strstr(text, "ramp") != NULL, "a plan of all outputs again");
  heddle_text_free(text);
  heddle_workflow_free(flow);
}

/* A tensor of the caller's goes back to it, whatever becomes of the call. */
static void lend_a_tensor(heddle_engine* engine, heddle_workflow* flow) {
  float floats[6] = {1, 2, 3, 4, 5, 6};
  int64_t sizes[] = {2, 3};
  int came_back = 0;
  char *error = NULL, *text = NULL, *warnings = NULL;
  heddle_run* run = NULL;
  DLManagedTensor mine = {{floats, {HEDDLE_DL_CPU, 0}, 2, {HEDDLE_DL_FLOAT, 32, 1}, sizes, NULL, 0},
                          &came_back,
                          tensor_comes_back};
  heddle_run_input tensor = {
      .size = sizeof tensor, .kind = HEDDLE_KIND_TENSOR, .name = "ramp.strat", .tensor = &mine};
  const heddle_run_input* inputs[] = {&tensor};
  heddle_start_options start = {.size = sizeof start, .inputs = inputs, .input_count = 1};
  expect(heddle_engine_start(engine, flow, &start, &run, &error) == HEDDLE_INVALID_ARGUMENT &&
             strstr(error, "no input 'strat'") != NULL,
         "an unknown input is refused");
  heddle_text_free(error);
  expect(came_back == 1, "a refused tensor comes back");
  done(heddle_engine_check(engine, flow, NULL, &text, &warnings, &error), &error);
  expect(text[0] == 0, "it can run");
  heddle_text_free(text), heddle_text_free(warnings);
  tensor.name = "tensor.value";
  done(heddle_engine_check(engine, flow, &start, &text, NULL, &error), &error);
  expect(text[0] == 0 && came_back == 2, "with the tensor, too, which comes back");
  heddle_text_free(text);
  done(heddle_engine_plan(engine, flow, &start, 0, &text, &error), &error);
  expect(strstr(text, "ramp") == NULL && came_back == 3, "a plan without what the tensor replaces");
  heddle_text_free(text);
  start.size = 0;
  expect(heddle_engine_plan(engine, flow, &start, 0, &text, &error) == HEDDLE_INVALID_ARGUMENT &&
             came_back == 3,
         "of options whose size is wrong no tensor is taken");
  heddle_text_free(error);
}

/* Pictures of work under way. */
static void look_on(heddle_engine* engine, struct counts* counts) {
  char* error = NULL;
  heddle_run* run = NULL;
  heddle_workflow* drawing = NULL;
  heddle_start_options start = {
      .size = sizeof start, .observer = observe, .observer_user = counts, .previews = 1};
  done(heddle_engine_parse(engine, picture, "picture", &drawing, &error), &error);
  done(heddle_engine_start(engine, drawing, &start, &run, &error), &error);
  done(heddle_run_wait(run, -1, NULL, &error), &error);
  expect(counts->previews == 3, "a preview of each step");
  heddle_run_free(run);
  heddle_workflow_free(drawing);
}

/* A paused run begins nothing: a run of as many nodes comes and goes in the meantime. */
static void pause_a_run(heddle_engine* engine) {
  enum { nodes = 1000 };
  struct gate gate = {1, 0};
  struct counts counts = {.gate = &gate};
  char *error = NULL, *text = NULL;
  const char* keep[] = {"end.out"};
  heddle_run *run = NULL, *other = NULL;
  heddle_results* results = NULL;
  heddle_workflow *first = chain_of(engine, nodes, 0), *second = chain_of(engine, nodes, 1);
  heddle_start_options start = {.size = sizeof start,
                                .observer = observe,
                                .observer_user = &counts,
                                .fetch = keep,
                                .fetch_count = 1};
  done(heddle_engine_start(engine, first, &start, &run, &error), &error);
  while (!gate.reached) sched_yield();
  heddle_run_pause(run);
  gate.closed = 0;
  done(heddle_engine_start(engine, second, NULL, &other, &error), &error);
  done(heddle_run_wait(other, -1, NULL, &error), &error);
  expect(counts.started == 1, "a paused run begins no node");
  expect(heddle_run_wait(run, 0, NULL, NULL) == HEDDLE_STILL_RUNNING, "nor does it end");
  heddle_run_resume(run);
  done(heddle_run_wait(run, -1, &results, &error), &error);
  expect(counts.started == nodes + 1, "it goes on when it is resumed");
  done(heddle_results_text(results, "end.out", &text, &error), &error);
  expect(strcmp(text, "1000") == 0, "and ends as without the pause");
  heddle_text_free(text);
  heddle_results_free(results);
  heddle_run_free(run), heddle_run_free(other);
  heddle_workflow_free(first), heddle_workflow_free(second);
}

/* A run that gives its memory back, and goes on: nodes that were made are not made again. And what
 * a checkpoint is not. */
static void release_a_run(heddle_engine* engine) {
  char *error = NULL, *text = NULL;
  const char* keep[] = {"end.out"};
  heddle_run* run = NULL;
  heddle_results* results = NULL;
  heddle_run_checkpoint* checkpoint = NULL;
  heddle_workflow* flow = chain_of(engine, 100, 2);
  heddle_start_options start = {.size = sizeof start, .fetch = keep, .fetch_count = 1};
  done(heddle_engine_start(engine, flow, &start, &run, &error), &error);
  heddle_run_pause_and_release(run);
  heddle_run_resume(run);
  done(heddle_run_wait(run, -1, &results, &error), &error);
  done(heddle_results_text(results, "end.out", &text, &error), &error);
  expect(strcmp(text, "102") == 0, "it ends as without the pause");
  expect(heddle_run_checkpoint_load("no.checkpoint", &checkpoint, &error) == HEDDLE_NOT_FOUND,
         "there is no such checkpoint");
  expect(strstr(error, "no.checkpoint") != NULL, "and the message names it");
  heddle_text_free(error);
  heddle_text_free(text);
  heddle_run_checkpoint_free(checkpoint);
  heddle_results_free(results);
  heddle_run_free(run);
  heddle_workflow_free(flow);
}

/* A run that would never end. */
static void cancel_a_run(heddle_engine* engine) {
  static const char endless[] =
      "{\"wait\": {\"class_type\": \"test.wait\", \"inputs\": {}},"
      " \"end\": {\"class_type\": \"test.keep\", \"inputs\": {\"value\": [\"wait\", 0]}}}";
  char* error = NULL;
  heddle_run* run = NULL;
  heddle_results* results = NULL;
  heddle_workflow* waiting = NULL;
  done(heddle_engine_parse(engine, endless, "endless", &waiting, &error), &error);
  done(heddle_engine_start(engine, waiting, NULL, &run, &error), &error);
  expect(heddle_run_wait(run, 0, &results, NULL) == HEDDLE_STILL_RUNNING, "it runs");
  heddle_run_cancel(run);
  expect(heddle_run_wait(run, -1, NULL, NULL) == HEDDLE_CANCELLED, "it was cancelled");
  heddle_run_free(run);
  heddle_workflow_free(waiting);
}

static void be_refused(heddle_engine* engine, heddle_engine_options options) {
  char* error = NULL;
  heddle_workflow* flow = NULL;
  heddle_run* run = NULL;
  heddle_engine* none = NULL;
  uint64_t bytes = 7;
  expect(heddle_engine_load(engine, "no/such/file.json", &flow, &error) == HEDDLE_NOT_FOUND &&
             error != NULL,
         "a missing file is not found");
  heddle_text_free(error);
  expect(heddle_engine_start(engine, NULL, NULL, &run, &error) == HEDDLE_INVALID_ARGUMENT,
         "no workflow, no run");
  heddle_text_free(error);
  options.comfyui_dir = "no/such/folder";
  expect(heddle_engine_make(&options, &none, &error) == HEDDLE_INVALID_ARGUMENT && none == NULL &&
             error != NULL && strstr(error, "comfyui_dir") != NULL &&
             strstr(error, "no/such/folder") != NULL,
         "a ComfyUI folder that is not there is refused");
  heddle_text_free(error);
  options.size = 0;
  expect(heddle_engine_make(&options, &none, NULL) == HEDDLE_INVALID_ARGUMENT && none == NULL,
         "options without a size are refused");
  done(heddle_engine_unload(engine, "cpu", NULL, &bytes, &error), &error);
  expect(heddle_engine_unload(engine, "gpu:3", NULL, &bytes, NULL) == HEDDLE_NOT_FOUND,
         "no device, nothing to unload");
  done(heddle_engine_unload(engine, NULL, NULL, &bytes, &error), &error);
  expect(bytes == 0, "nothing is left to unload");
}

int main(int argc, char** argv) {
  struct counts counts = {0}, drawing = {0};
  char* error = NULL;
  char* text = NULL;
  const char* devices[] = {"cpu"};
  heddle_engine_options options = {.size = sizeof options,
                                   .devices = devices,
                                   .device_count = 1,
                                   .log = be_told,
                                   .allocate = allocate,
                                   .free = give_back,
                                   .allocator_user = &counts,
                                   .host_budget = "50%",
                                   .idle_seconds = 60};
  heddle_engine* engine = NULL;
  heddle_workflow* flow = NULL;
  if (argc != 3) return fprintf(stderr, "usage: %s PLUGINS MORE_PLUGINS\n", argv[0]), 2;
  options.default_plugin_dir = argv[1];
  options.plugin_dirs = (const char* const*)&argv[2];
  options.plugin_dir_count = 1;
  done(heddle_engine_make(&options, &engine, &error), &error);
  done(heddle_engine_parse(engine, workflow, NULL, &flow, &error), &error);
  done(heddle_workflow_set(flow, "greet.times", "2", &error), &error);
  done(heddle_workflow_place(flow, "ramp", "cpu:0", &error), &error);
  done(heddle_engine_plan(engine, flow, NULL, 0, &text, &error), &error);
  expect(strstr(text, "ramp") != NULL, "the plan names its nodes");
  heddle_text_free(text);
  convert_saved(engine);
  give_and_take(engine, flow, &counts);
  run_in_part(engine);
  lend_a_tensor(engine, flow);
  look_on(engine, &drawing);
  pause_a_run(engine);
  release_a_run(engine);
  cancel_a_run(engine);
  be_refused(engine, options);
  heddle_workflow_free(flow);
  heddle_engine_free(engine);
  expect(counts.pieces_out == 0, "all memory went back");
  return faults == 0 ? 0 : 1;
}
