// libFuzzer target: any bytes are a workflow that ComfyUI's interface saved, converted with classes
// of all sorts of inputs. Faults are one report; what was converted is a workflow of the API form,
// and is the same when it is converted again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "engine/base/error.h"
#include "engine/graph/saved_form.h"
#include "engine/graph/workflow_json.h"
#include "tests/engine/graph/saved_form_fixture.h"

namespace {

using namespace heddle::engine;

const ObjectInfo& classes() {
  static ObjectInfo made;
  static const bool once = [] {
    made.add(parse_json(heddle::test::kSavedClasses, "classes"));
    return true;
  }();
  static_cast<void>(once);
  return made;
}

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  for (const UnknownClasses unknown : {UnknownClasses::refuse, UnknownClasses::keep}) {
    try {
      const std::optional<Json> saved =
          read_saved_form({reinterpret_cast<const char*>(data), size}, "fuzz");
      if (!saved) return 0;
      const Json nodes = convert_saved_form(*saved, classes(), "fuzz", unknown);
      require(write_json(convert_saved_form(*saved, classes(), "fuzz", unknown)) ==
              write_json(nodes));
      for (const Json::Member& node : nodes.members()) {
        require(node.value.at("class_type").is_string());
        for (const Json::Member& input : node.value.at("inputs").members())
          if (input.value.is_array()) require(nodes.find(input.value.at(0).as_string()) != nullptr);
      }
      workflow_of(nodes, "fuzz");
    } catch (const Error& error) {
      require(error.code() == Code::invalid_argument);
    }
  }
  return 0;
}
