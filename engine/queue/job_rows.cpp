#include "engine/queue/job_rows.h"

namespace heddle::engine {

std::string_view job_state_name(JobState state) {
  switch (state) {
    case JobState::pending:
      return "pending";
    case JobState::running:
      return "running";
    case JobState::done:
      return "done";
    case JobState::failed:
      return "failed";
    case JobState::cancelled:
      return "cancelled";
    case JobState::paused:
      return "paused";
  }
  return "unknown";
}

Job read_job(const Statement& row) {
  Job job;
  job.id = row.text(0);
  job.state = static_cast<JobState>(row.integer(1));
  job.sequence = row.integer(2);
  job.generation = row.integer(3);
  job.priority = row.integer(4);
  job.number = row.real(5);
  job.is_cancel_wanted = row.integer(6) != 0;
  job.created_ms = row.integer(7);
  job.started_ms = row.integer(8);
  job.ended_ms = row.integer(9);
  std::string* const short_texts[] = {&job.user,     &job.tag,  &job.batch, &job.client,
                                      &job.retry_of, &job.kind, &job.model};
  int column = 10;
  for (std::string* text : short_texts) *text = row.text(column++);
  job.is_background = row.integer(column++) != 0;
  job.from_start = row.integer(column++) != 0;
  for (std::string* text : {&job.prompt, &job.extra_data, &job.targets, &job.outputs, &job.status})
    *text = row.text(column++);
  return job;
}

std::vector<Job> read_jobs(Statement& rows) {
  std::vector<Job> jobs;
  while (rows.step()) jobs.push_back(read_job(rows));
  return jobs;
}

}  // namespace heddle::engine
