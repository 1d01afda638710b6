// What goes, so that a disk does not run full: files of the temp and the output folder and jobs of
// the history, by their age and by the bytes of all. Nothing goes where nothing was asked for.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string_view>
#include <thread>
#include <vector>

#include "engine/queue/job_queue.h"
#include "heddle/engine.hpp"

namespace heddle::engine {

struct KeepRule {
  std::optional<std::chrono::seconds> age;  // what is older goes
  std::optional<std::uint64_t> bytes;       // of all together: beyond, the oldest go
  bool is_any() const { return age || bytes; }
};

struct RetentionOptions {
  KeepRule temp, output;
  std::optional<std::chrono::seconds> history;  // of jobs, behind their end
  // Bytes that are to be free on the disks. Where they are not, the oldest files of the temp folder
  // go, then those of the output folder, if that has a rule.
  std::uint64_t free_bytes = 0;
  std::chrono::seconds period{300};     // all of both folders is looked at
  std::function<std::int64_t()> clock;  // ms of the system; empty: the system's own
  // Bytes that are free where a folder lies; empty: as the system says.
  std::function<std::uint64_t(const std::filesystem::path&)> free_at;

  bool is_any() const { return temp.is_any() || output.is_any() || history || free_bytes > 0; }
};

struct KeptFile {
  std::filesystem::path path;
  std::int64_t changed_ms = 0;
  std::uint64_t bytes = 0;
};

// Which files go, the oldest first: by the rule, and on until `wanted` bytes come free. None that
// has been changed within the last minute goes: somebody may be at work with it. Pure.
std::vector<KeptFile> surplus_files(std::vector<KeptFile> files, const KeepRule& rule,
                                    std::int64_t now_ms, std::uint64_t wanted);

class Retention {
 public:
  Retention(const heddle::Engine& engine, JobQueue& queue, RetentionOptions options);
  // From now on, every period, until the object goes; nothing where nothing is asked for.
  void start();
  // Once, now. What cannot be removed is told in the log, and stays. Any thread, one at a time.
  void sweep();

 private:
  void sweep_folder(std::string_view kind, const KeepRule& rule, bool frees);
  std::int64_t now() const;

  const heddle::Engine& engine_;
  JobQueue& queue_;
  const RetentionOptions options_;
  std::jthread thread_;
};

}  // namespace heddle::engine
