// Parts of a URL, taken apart and decoded. Pure; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace heddle::engine {

// "%41" is "A". Nothing for a "%" without two digits behind it, and for a NUL. `plus_is_space`: as
// in queries.
std::optional<std::string> percent_decoded(std::string_view text, bool plus_is_space = false);

// "a b" is "a%20b": all but letters, digits, "-", ".", "_" and "~".
std::string percent_encoded(std::string_view text);

// "a=1&b=%20" as pairs, decoded. What cannot be decoded is left as it is.
class Query {
 public:
  explicit Query(std::string_view text);
  // The first of this name; nullptr: there is none.
  const std::string* find(std::string_view name) const;
  std::string get(std::string_view name, std::string_view otherwise = "") const;
  // "true" and "1" in any case; `otherwise` where it is not given.
  bool is_true(std::string_view name, bool otherwise = false) const;

 private:
  std::vector<std::pair<std::string, std::string>> parts_;
};

// The segments of a path, still encoded: {"a", "b%2Fc"} of "/a/b%2Fc".
std::vector<std::string_view> path_segments(std::string_view path);

}  // namespace heddle::engine
