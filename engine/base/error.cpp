#include "engine/base/error.h"

#include <cerrno>
#include <system_error>
#include <utility>

#include "engine/base/text.h"

namespace heddle::core {

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

Error system_error(std::string_view what, int error_number) {
  Code code = Code::io;
  if (error_number == ENOENT || error_number == ENOTDIR) code = Code::not_found;
  if (error_number == ENOMEM) code = Code::out_of_memory;
  std::string message = printable(what);  // most often the name of a file
  message += ": ";
  message += std::generic_category().message(error_number);
  return Error(code, message);
}

}  // namespace heddle::core
