/* A program in C11 that embeds the engine: values in and out, events, a log and an allocator of its
 * own. CTest runs it with the folders of the plugins; it exits with 0 when everything is as it has
 * to be. */
#include "tests/sample_plugins/embed.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char workflow[] =
    "{\"greet\": {\"class_type\": \"demo.hello\", \"inputs\": {\"name\": \"heddle\", \"times\": "
    "1}},"
    " \"count\": {\"class_type\": \"demo.count_bytes\", \"inputs\": {\"text\": [\"greet\", 0]}},"
    " \"number\": {\"class_type\": \"test.keep\", \"inputs\": {\"value\": [\"count\", 0]}},"
    " \"ramp\": {\"class_type\": \"test.ramp\", \"inputs\": {\"start\": 1}},"
    " \"tensor\": {\"class_type\": \"test.keep\", \"inputs\": {\"value\": [\"ramp\", 0]}},"
    " \"show\": {\"class_type\": \"PreviewAny\", \"inputs\": {\"source\": [\"greet\", 0]}}}";

int faults;

void expect(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "embed.c: not so: %s\n", what);
  ++faults;
}

void done(int32_t code, char** error) {
  if (code == 0) return;
  fprintf(stderr, "embed.c: error %d: %s\n", (int)code, *error != NULL ? *error : "no text");
  exit(1);
}

void observe(void* user, const heddle_run_event* event) {
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
  done(heddle_engine_drop_cached(engine, &bytes, &error), &error);
  expect(bytes > 0, "results of the runs are kept");
  done(heddle_engine_drop_cached(engine, &bytes, &error), &error);
  expect(bytes == 0, "no result is kept any more");
  expect(heddle_engine_drop_cached(NULL, NULL, NULL) == HEDDLE_INVALID_ARGUMENT,
         "no engine, nothing to drop");
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
