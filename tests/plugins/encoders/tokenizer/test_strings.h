// The strings of test_strings.py, made again in C++. Pure after construction, any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace heddle::text {

class TestStrings {
 public:
  // `path` is data/string_source.json. Throws std::runtime_error.
  TestStrings(const std::string& path, std::uint64_t seed);

  // UTF-8; equal for equal seed and index.
  std::string at(std::uint64_t index) const;

 private:
  friend class StringMaker;
  std::uint64_t seed_;
  std::vector<std::string> words_, joints_, emoji_, spaces_, marks_, tokens_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> blocks_;
};

}  // namespace heddle::text
