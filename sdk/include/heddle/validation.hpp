// heddle/validation.hpp - what a node says of its inputs before anything runs. Part of
// heddle/node.hpp.
#pragma once

#include "ports.hpp"

namespace [[gnu::visibility("hidden")]] heddle {

// Nothing: the inputs are right. A text: why they are not; it may be empty.
using Refusal = std::optional<std::string>;

// One question: may the node run with what the workflow says? Of the inputs that it judges.
class Validation {
 public:
  Validation(heddle_validation* raw, const heddle_node_desc& desc) : raw_(raw), desc_(desc) {}

  // The literal of an input, or its default; nothing: it is linked, absent or refused already.
  template <class T>
  std::optional<T> operator[](const Input<T>& input) const {
    const heddle_value* v = table().value(raw_, index(input));
    return v == nullptr ? std::optional<T>() : std::optional<T>(Wire<T>::read(v));
  }
  // The type of the output that an input is linked to; empty: it is not.
  template <class T>
  std::string_view received(const Input<T>& input) const {
    const char* type = table().received(raw_, index(input));
    return type == nullptr ? "" : type;
  }
  // Whether the file that an input names is there; true also where nobody knows the folders.
  template <class T>
  bool has_file(const Input<T>& input, const char* folder) const {
    return table().has_file(raw_, index(input), folder) != 0;
  }

 private:
  static const heddle_validation_service& table() { return service<heddle_validation_service>(); }
  template <class T>
  std::uint32_t index(const Input<T>& input) const {
    return port_position(&input.port, desc_.inputs, desc_.input_count);
  }
  heddle_validation* raw_;
  const heddle_node_desc& desc_;
};

// The inputs that a node judges: `static constexpr auto judged = heddle::judged(image);`.
template <class... T>
constexpr std::array<const char*, sizeof...(T) + 1> judged(const Input<T>&... inputs) {
  return {inputs.port.name..., nullptr};
}

}  // namespace heddle
