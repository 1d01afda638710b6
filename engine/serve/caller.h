// Who asks. A plain value.
#pragma once

#include <string>
#include <string_view>

namespace heddle::engine {

struct Caller {
  std::string user;       // whose jobs and files are theirs; "": nobody in particular
  bool is_admin = false;  // sees and changes everything
  std::string key;        // id of the API key that says so; "": none in a file

  friend bool operator==(const Caller&, const Caller&) = default;
  // Whether what belongs to `owner` is theirs to see.
  bool may_see(std::string_view owner) const {
    return is_admin || (!user.empty() && user == owner);
  }
};

// Where no keys are wanted, and the holder of --api-key: who asks may do everything.
inline Caller operator_caller() { return {"", true, ""}; }

}  // namespace heddle::engine
