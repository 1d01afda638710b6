// Jobs as /v1 tells them. Any thread.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/serve/service.h"

namespace heddle::engine {

// What is asked for once, for all jobs of an answer.
class JobTeller {
 public:
  explicit JobTeller(const ServiceParts& parts);

  // `position`: how many run before it, of one that waits.
  Json tell(const Job& job, std::optional<std::int64_t> position) const;
  Json tell_whole(const Job& job) const;  // with its place and its workflow
  Json tell(const std::vector<Job>& jobs) const;
  // Ids of the jobs that run on a device.
  std::vector<std::string> jobs_on(const std::string& device) const;

 private:
  Json waiting_of(const Job& job, std::optional<std::int64_t> position) const;
  Json progress_of(const Job& job) const;
  std::string state_of_run(const Job& job) const;
  std::optional<double> expected_wait(const Job& job) const;

  const ServiceParts& parts_;
  const std::map<std::string, RunSnapshot> running_;
  const bool is_paused_;
  mutable std::optional<std::map<std::string, double>> waits_;  // as soon as one is asked for
};

}  // namespace heddle::engine
