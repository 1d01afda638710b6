#include "engine/queue/run_times.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "engine/base/text.h"

namespace heddle::engine {
namespace {

constexpr std::int64_t kKeysKept = 10'000;
constexpr std::int64_t kRunsThatCount = 5;  // a run later counts a fifth
constexpr std::int64_t kUnknownMs = 1000;

// From the most exact one to that of all jobs.
std::vector<std::string> keys_of(const std::string& kind, const std::string& model) {
  std::vector<std::string> keys;
  if (!kind.empty()) keys.push_back(cat("kind ", kind));
  if (!model.empty()) keys.push_back(cat("model ", model));
  keys.push_back("all");
  return keys;
}

}  // namespace

std::optional<RunTime> RunTimes::of_key(const std::string& key) const {
  Statement& row =
      database_.statement("SELECT seconds, device_ms, runs FROM run_times WHERE key = ?").bind(key);
  if (!row.step()) return {};
  const RunTime time{row.real(0), row.integer(1), row.integer(2)};
  row.reset();
  return time;
}

std::optional<RunTime> RunTimes::find(const std::string& kind, const std::string& model) const {
  for (const std::string& key : keys_of(kind, model))
    if (const std::optional<RunTime> time = of_key(key)) return time;
  return {};
}

std::int64_t RunTimes::charge_of(const std::string& kind, const std::string& model) const {
  const std::optional<RunTime> time = find(kind, model);
  return time ? std::max<std::int64_t>(time->device_ms, 1) : kUnknownMs;
}

void RunTimes::learn(const std::string& kind, const std::string& model, double seconds,
                     std::int64_t device_ms) {
  for (const std::string& key : keys_of(kind, model)) {
    RunTime time = of_key(key).value_or(RunTime{});
    time.runs = std::min(time.runs + 1, kRunsThatCount);
    const double share = 1.0 / double(time.runs);
    time.seconds += share * (seconds - time.seconds);
    time.device_ms += std::llround(share * double(device_ms - time.device_ms));
    database_
        .statement(
            "INSERT OR REPLACE INTO run_times VALUES(?, ?, ?, ?, (SELECT ifnull(max(seen), 0) + 1 "
            "FROM run_times))")
        .bind(key)
        .bind(time.seconds)
        .bind(time.device_ms)
        .bind(time.runs)
        .run();
  }
  database_.statement("DELETE FROM run_times WHERE seen <= (SELECT max(seen) FROM run_times) - ?")
      .bind(kKeysKept)
      .run();
}

}  // namespace heddle::engine
