// The process that draws, as the plugin sees it. One call's thread.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <heddle/node.hpp>
#include <span>
#include <string>
#include <vector>

#include "plugins/shader/messages.h"

namespace heddle::shader {

// How long one call may draw: HEDDLE_SHADER_SECONDS of the environment, else 60 seconds. Throws
// HEDDLE_INVALID_ARGUMENT where that is no number from 1 to 86400.
std::chrono::seconds drawing_time();

// Ends with the object, whatever it is doing.
struct Child {
  Child() = default;
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t process = -1;
  int socket = -1;
};

// Waiting for it throws HEDDLE_CANCELLED when the run
// was, and HEDDLE_UNSUPPORTED when the time is over.
class DrawingProcess {
 public:
  DrawingProcess(Context& ctx, const Request& request, const std::string& source,
                 std::span<const float> curves);

  void send(std::span<const float> numbers) { write(numbers.data(), numbers.size_bytes()); }
  // Throws HEDDLE_INVALID_ARGUMENT with the driver's message when the shader cannot be drawn.
  void await_drawn();
  void receive(std::span<float> numbers) { read(numbers.data(), numbers.size_bytes()); }

 private:
  void write(const void* from, std::size_t bytes);
  void read(void* to, std::size_t bytes);
  void wait_until(short ready);

  Context& ctx_;
  std::chrono::seconds time_;
  std::chrono::steady_clock::time_point end_;
  Child child_;
};

}  // namespace heddle::shader
