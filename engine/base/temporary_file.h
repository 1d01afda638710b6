// The names of files that become whole under another name, so that a program that a signal ends
// leaves none of them behind.
#pragma once

#include <atomic>
#include <string>

namespace heddle::engine {

// As long as it lives, its file is a temporary one: removed at the end, unless it has another name
// by then. Any thread.
class TemporaryFile {
 public:
  explicit TemporaryFile(std::string path);
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;

  const std::string& path() const { return path_; }

 private:
  const std::string path_;
  std::atomic<const char*>* place_ = nullptr;  // in the list; nullptr: there was none left
};

// Removes the files of all that live. Async-signal-safe, for a program that is about to end.
void unlink_temporary_files() noexcept;

}  // namespace heddle::engine
