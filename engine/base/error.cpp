#include "engine/base/error.h"

#include <sys/resource.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "engine/base/text.h"

namespace heddle::engine {

std::string_view code_name(Code code) {
  switch (code) {
    case Code::invalid_argument:
      return "invalid argument";
    case Code::not_found:
      return "not found";
    case Code::unsupported:
      return "unsupported";
    case Code::out_of_memory:
      return "out of memory";
    case Code::cancelled:
      return "cancelled";
    case Code::io:
      return "input/output";
    case Code::internal:
      return "internal";
  }
  return "unknown code";
}

Error::Error(Code code, const std::string& message) : std::runtime_error(message), code_(code) {}

Error& Error::at(std::string where) {
  trail_.insert(trail_.begin(), std::move(where));
  return *this;
}

std::string Error::full() const {
  std::string text;
  for (const std::string& frame : trail_) {
    if (!text.empty()) text += " / ";
    text += frame;
  }
  if (!text.empty()) text += ": ";
  text += what();
  return text;
}

namespace {

// What a user can do about it, where the system's own words do not say so.
std::string advice(int error_number) {
  switch (error_number) {
    case EACCES:
    case EPERM:
      return ". Check the permissions of the file and of the folders on the way to it.";
    case EAGAIN:
      return ". The system refuses another thread or process: look at `ulimit -u`, at pids.max of "
             "the control group, and for memory at `ulimit -v`.";
    case EDQUOT:
    case EFBIG:
    case ENOSPC:
      return ". Free some space there, or name a place that has more.";
    case EIO:
      return ". The disk, or the way to it, has failed: the system's log (dmesg) says more.";
    case EISDIR:
      return ". Name a file in that folder.";
    case ELOOP:
      return ". Links lead in a circle: `ls -l` shows where to.";
    case EMFILE: {
      rlimit limit{};
      const bool known = ::getrlimit(RLIMIT_NOFILE, &limit) == 0;
      return cat(". This process may have ", known ? cat(limit.rlim_cur) : "no more",
                 " open at a time: raise that, as with `ulimit -n 4096`.");
    }
    case ENFILE:
      return ". All programs together have as many open as the system allows (fs.file-max).";
    case ENAMETOOLONG:
      return ". Use a shorter name.";
    case ENOTDIR:
      return ". A part of the path is no folder.";
    case EPIPE:
      return ". Whoever read from there has ended.";
    case EROFS:
      return ". Name a place that may be written to.";
    default:
      return "";
  }
}

}  // namespace

Error system_error(std::string_view what, int error_number) {
  Code code = Code::io;
  if (error_number == ENOENT || error_number == ENOTDIR) code = Code::not_found;
  if (error_number == ENOMEM || error_number == EAGAIN) code = Code::out_of_memory;
  std::string message = printable(what);  // most often the name of a file
  message += ": ";
  message += std::generic_category().message(error_number);
  message += advice(error_number);
  return Error(code, message);
}

std::string option_frame(std::string_view option, std::string_view key) {
  return key.empty() ? cat("option ", option) : cat("option ", option, "[", key, "]");
}

}  // namespace heddle::engine
