// The one exception of the engine. An Error says what is wrong, with the values and what to do
// about it (message), how a program may react (code), and where it happened (trail: the run, the
// node, the step). The message is made where the fault is found; every caller that knows more of
// the way adds one frame with at(). Plain value; one thread at a time.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::engine {

// The numbers are those of heddle_code in the C ABI.
enum class Code : std::int32_t {
  invalid_argument = 1,  // the caller can fix this: bad value, bad type, bad file
  not_found = 2,
  unsupported = 3,  // a valid request that this build or device cannot serve
  out_of_memory = 4,
  cancelled = 5,
  io = 6,
  internal = 7,  // a bug in the engine or in a plugin
};

// "invalid argument", "not found", ...; "unknown code" for a number that is none of them.
std::string_view code_name(Code code);

class Error : public std::runtime_error {
 public:
  Error(Code code, const std::string& message);

  Code code() const { return code_; }

  // Outermost frame first: {"run 42", "node 'decode'", "step 3"}.
  const std::vector<std::string>& trail() const { return trail_; }

  // Puts a frame in front of the trail and returns *this, for `throw error.at("node 'decode'")`. In
  // a catch block that has the error by reference, `error.at(...); throw;` keeps the very same
  // object.
  Error& at(std::string where);

  // "run 42 / node 'decode' / step 3: message"; the message alone without a trail.
  std::string full() const;

 private:
  Code code_;
  std::vector<std::string> trail_;
};

// The error of a failed system call: "<what>: No such file or directory", with what to do about it
// where that is known. ENOENT and ENOTDIR become not_found, ENOMEM and EAGAIN (a refused thread)
// out_of_memory, everything else io. `error_number` is errno, saved by the caller before anything
// can change it.
Error system_error(std::string_view what, int error_number);

// Runs body; what it throws has `frame` in front of its trail, unless that is empty.
template <class F>
auto framed(std::string_view frame, F&& body) -> decltype(body()) {
  try {
    return body();
  } catch (Error& error) {
    if (!frame.empty()) error.at(std::string(frame));
    throw;
  }
}

// The frame of a fault in what an engine was opened with: "option budgets[gpu]", by the field of
// EngineOptions and where that is a map or a list the entry. Who has read the options from
// elsewhere puts the place in its stead.
std::string option_frame(std::string_view option, std::string_view key = {});

}  // namespace heddle::engine
