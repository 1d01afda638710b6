// The files that jobs go on from when the server that ran them has ended in between: one for each
// job, in a folder beside the queue. Any thread; a job's file is one thread's affair at a time.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "heddle/engine.hpp"

namespace heddle::engine {

class JobCheckpoints {
 public:
  // Makes the folder where there is none, for its owner alone. Throws Error where that cannot be
  // done. Empty: no files are kept.
  explicit JobCheckpoints(std::filesystem::path folder);

  // Of a job: empty where none is kept, as for an id that makes no name of a file.
  std::filesystem::path file_of(const std::string& job) const;
  // Nothing where there is none; and, with a warning in the log, where it is torn or of another
  // job: then it is removed.
  std::optional<heddle::RunCheckpoint> load(const std::string& job) const;
  void forget(const std::string& job) const;
  // Removes all but those of the jobs that are wanted.
  void forget_others(const std::function<bool(const std::string& job)>& is_wanted) const;

 private:
  const std::filesystem::path folder_;
};

}  // namespace heddle::engine
