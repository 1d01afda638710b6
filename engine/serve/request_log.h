// What is told of a request in the log. A plain value.
#pragma once

#include <cstdint>
#include <string>

namespace heddle::engine {

struct RequestLine {
  std::string id;  // its X-Request-Id
  std::string method, path, peer, user;
  unsigned status = 0;
  std::uint64_t bytes = 0;  // of the answer; 0 also where it comes by and by
  double milliseconds = 0;
};

}  // namespace heddle::engine
