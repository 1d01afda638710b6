// Counters of a server since it began, in Prometheus's text format. Any thread.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "engine/queue/job.h"
#include "heddle/run_event.hpp"

namespace heddle::engine {

// Text that grows by families of metrics.
class Exposition {
 public:
  using Labels = std::vector<std::pair<std::string_view, std::string>>;
  // `type`: "counter", "gauge", "histogram".
  void family(std::string_view name, std::string_view type, std::string_view help);
  // Of the last family; `suffix`: "_bucket".
  void sample(const Labels& labels, double value, std::string_view suffix = {});
  const std::string& text() const { return text_; }

 private:
  std::string text_, name_;
};

class Histogram {
 public:
  void add(double seconds);
  void write(Exposition& to) const;

 private:
  static constexpr std::array<double, 12> kBounds = {0.01, 0.1, 0.5, 1,   2.5,  5,
                                                     10,   30,  60,  300, 1800, 7200};
  std::array<std::uint64_t, kBounds.size() + 1> counts_{};  // the last one: beyond all
  double sum_ = 0;
};

class Metrics {
 public:
  void job_began(double waited_seconds);
  // `error`: its code where the job has failed; else "".
  void job_ended(JobState state, double run_seconds, const std::string& error);
  void take(const heddle::Event& event);
  void answered(unsigned status);
  void write(Exposition& to) const;

 private:
  struct NodeClass {
    std::uint64_t runs = 0, cached = 0, steps = 0;
    double seconds = 0;
  };
  mutable std::mutex mutex_;
  Histogram waits_, runs_;                                    // mutex_
  std::map<JobState, std::uint64_t> ended_;                   // mutex_
  std::map<std::string, std::uint64_t, std::less<>> errors_;  // mutex_: by code
  std::map<std::string, NodeClass, std::less<>> nodes_;       // mutex_: by class
  std::map<unsigned, std::uint64_t> answers_;                 // mutex_: by status
};

}  // namespace heddle::engine
