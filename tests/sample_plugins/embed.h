/* What the parts of embed.c share: checks, and an observer that counts. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include <heddle/engine.h>

extern int faults;

void expect(int holds, const char* what);
/* For calls that must not fail. */
void done(int32_t code, char** error);

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

void observe(void* user, const heddle_run_event* event); /* user: struct counts */

/* embed_runs.c */
void pause_a_run(heddle_engine* engine);
void release_a_run(heddle_engine* engine);
void cancel_a_run(heddle_engine* engine);
