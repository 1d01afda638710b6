// Rows of the queue's table, as jobs.
#pragma once

#include <string>

#include "engine/queue/database.h"
#include "engine/queue/job.h"

namespace heddle::engine {

#define HEDDLE_JOB_SHORT_COLUMNS                                                               \
  "id, state, seq, generation, priority, number, cancel, created, started, ended, user, tag, " \
  "batch, client, retry_of, kind, model, class, "                                              \
  "EXISTS(SELECT 1 FROM from_start WHERE job = seq), "

// What read_job() reads, for a SELECT or a RETURNING.
#define HEDDLE_JOB_COLUMNS HEDDLE_JOB_SHORT_COLUMNS "prompt, extra_data, targets, outputs, status"

// The same, with the texts that were submitted left empty; and without all long texts.
#define HEDDLE_JOB_COLUMNS_IN_BRIEF HEDDLE_JOB_SHORT_COLUMNS "'', '', '', outputs, status"
#define HEDDLE_JOB_COLUMNS_WITHOUT_TEXTS HEDDLE_JOB_SHORT_COLUMNS "'', '', '', '', ''"

// The plain order of jobs that wait, of job_turns.h.
#define HEDDLE_PLAIN_ORDER "class, priority DESC, number, rank"

Job read_job(const Statement& row);
// The rest of the rows.
std::vector<Job> read_jobs(Statement& rows);

}  // namespace heddle::engine
