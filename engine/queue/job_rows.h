// Rows of the queue's table, as jobs.
#pragma once

#include <string>

#include "engine/queue/database.h"
#include "engine/queue/job.h"

namespace heddle::engine {

// What read_job() reads, for a SELECT or a RETURNING.
#define HEDDLE_JOB_COLUMNS                                                                     \
  "id, state, seq, generation, priority, number, cancel, created, started, ended, user, tag, " \
  "batch, client, retry_of, prompt, extra_data, targets, outputs, status"

// The same, with the texts that were submitted left empty.
#define HEDDLE_JOB_COLUMNS_IN_BRIEF                                                            \
  "id, state, seq, generation, priority, number, cancel, created, started, ended, user, tag, " \
  "batch, client, retry_of, '', '', '', outputs, status"

Job read_job(const Statement& row);
// The rest of the rows.
std::vector<Job> read_jobs(Statement& rows);

}  // namespace heddle::engine
