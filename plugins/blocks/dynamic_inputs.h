// plugins/blocks/dynamic_inputs.h - the inputs that ComfyUI calls dynamic. A workflow gives them
// under dotted names ("images.image0", "resize_type.width"), and a node with HEDDLE_NODE_ANY_INPUT
// gets them beside its declared ones. What is said of them stands in the options of the declared
// port (Widget::extra, as in /object_info): sockets and their order, names, ranges and defaults are
// read from there. One call's thread.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "plugins/blocks/port_types.h"

namespace heddle::blocks {

// The inputs of a call beyond the declared ones, by name; null ones are left out.
std::map<std::string, Value> extra_inputs(Context& ctx);

struct GrownInput {
  std::string name;  // "image0"
  Value value;
};
// Those of a COMFY_AUTOGROW_V3 port that the workflow gave, in the order of its sockets. Throws
// HEDDLE_INVALID_ARGUMENT where one that has to be there is missing.
std::vector<GrownInput> grown_inputs(Context& ctx, const heddle_port& port);

// The same before a run: what is known of the tensors among them.
struct ToldInput {
  std::string name;
  std::optional<heddle_tensor_info> tensor;
};
std::vector<ToldInput> told_inputs(const Infer& question, const Input<Growing>& input);

// The rows of a COMFY_DYNAMICGROUP_V3 port, as many as the highest number says: records of what the
// workflow gave, empty for a row that it leaves out. Throws HEDDLE_INVALID_ARGUMENT for a name that
// is not "PORT.NUMBER.FIELD" with a number below the port's limit.
std::vector<Value> grouped_rows(Context& ctx, const heddle_port& port);

// The variant that a COMFY_DYNAMICCOMBO_V3 port was given, and the inputs that belong to it. An
// input that was not given has its default. All throw HEDDLE_INVALID_ARGUMENT, with the input's
// name, for one that is missing, of another kind or out of its range.
class ChosenVariant {
 public:
  ChosenVariant(Context& ctx, const Input<Variant>& input);
  // chosen: the variant's name; extra: what its inputs are given, by "PORT.CHILD".
  ChosenVariant(std::string name, const Value& options, Value chosen,
                std::map<std::string, Value> extra);

  const std::string& key() const { return key_; }
  std::int64_t whole(const char* child) const;
  double real(const char* child) const;
  std::string text(const char* child) const;
  bool truth(const char* child) const;
  Value value(const char* child) const;
  ChosenVariant nested(const char* child) const;

 private:
  Value spec(const char* child) const;  // its options in /object_info
  double number(const char* child) const;

  std::string name_, key_;
  Value inputs_;  // of the variant: "required", "optional"
  std::map<std::string, Value> extra_;
};

// The same before a run; empty where the variant is not known, or one of its inputs that are given
// as a widget or in the place of one. Its value() has no sockets then, and no nested variants.
std::optional<ChosenVariant> told_variant(const Infer& question, const Input<Variant>& input);

}  // namespace heddle::blocks
