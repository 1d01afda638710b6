// What tests of the queue share.
#pragma once

#include <string>
#include <vector>

#include "engine/base/text.h"
#include "engine/queue/job_queue.h"

namespace heddle::test {

inline engine::NewJob job_of(std::string id, std::string prompt = "{}") {
  engine::NewJob job;
  job.id = std::move(id);
  job.prompt = std::move(prompt);
  return job;
}

inline std::string ids_of(const std::vector<engine::Job>& jobs) {
  std::vector<std::string> ids;
  for (const engine::Job& job : jobs) ids.push_back(job.id);
  return engine::join(ids, " ");
}

inline std::string waiting(const engine::JobQueue& queue) {
  return ids_of(queue.list(engine::JobState::pending));
}

inline engine::JobClaim claim_of(const engine::Job& job) { return {job.id, job.generation}; }

}  // namespace heddle::test
