// An open file of this process, closed at the end. One owner.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <utility>

namespace heddle::engine {

class FileDescriptor {
 public:
  explicit FileDescriptor(int number) : number_(number) {}  // below 0: none
  ~FileDescriptor() { close(); }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;

  int number() const { return number_; }
  int release() { return std::exchange(number_, -1); }
  // 0, or the system's error: some file systems write no sooner.
  int close() {
    const int number = std::exchange(number_, -1);
    return number < 0 || ::close(number) == 0 || errno == EINTR ? 0 : errno;
  }

 private:
  int number_;
};

}  // namespace heddle::engine
