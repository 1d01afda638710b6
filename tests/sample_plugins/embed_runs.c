/* Of embed.c: runs that are paused, give their memory back, and are cancelled. */
#include "tests/sample_plugins/embed.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* A paused run begins nothing: a run of as many nodes comes and goes in the meantime. */
void pause_a_run(heddle_engine* engine) {
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
void release_a_run(heddle_engine* engine) {
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
void cancel_a_run(heddle_engine* engine) {
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
