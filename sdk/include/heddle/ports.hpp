// heddle/ports.hpp - what a node declares: its name, its inputs and outputs, and the weights of a
// block. Part of heddle/node.hpp.
#pragma once

#include "value.hpp"

namespace [[gnu::visibility("hidden")]] heddle {

struct Info {
  const char* type;
  std::uint32_t version;
  const char* title;
  const char* category;
  const char* doc = "";
  std::uint32_t flags = 0;
};

// The names an input chooses from. An array has to be constexpr and to end with nullptr, or it does
// not compile; what a pointer points to is not looked at.
class Choices {
 public:
  constexpr Choices() = default;
  template <class Names>
  requires std::is_convertible_v<const Names&, const char* const*>
  consteval Choices(const Names& names) : names_(names) {
    if constexpr (std::is_bounded_array_v<Names>)
      if (names[std::extent_v<Names> - 1] != nullptr) throw "choices end with nullptr";
  }
  constexpr operator const char* const*() const { return names_; }

 private:
  const char* const* names_ = nullptr;
};

// The literal an input takes when nothing is linked to it, and the values that the engine lets
// through to the node (heddle/abi/node.h says what a node may rely on). `source` names a model
// folder (FILE), a registry kind (CHOICE); `extra` is JSON for front ends, such as {"multiline":
// true}.
struct Widget {
  double number = 0;
  const char* text = "";
  double min = 0, max = 0, step = 0, round = 0;
  Choices choices = {};  // a default, so that who gives none is not warned
  const char* source = nullptr;
  std::int32_t kind = 0;  // 0: what the type suggests
  const char* extra = nullptr;
  std::uint32_t flags = 0;     // of the port: HEDDLE_PORT_OPTIONAL, HEDDLE_PORT_NONFINITE ...
  const char* type = nullptr;  // of the port, where it is another than T says: "COMBO"
};

// A port is found by its address: no index to keep in step, no string to compare.
template <class T>
struct Input {
  constexpr explicit Input(const char* name, std::uint32_t flags = 0, const char* doc = "",
                           const char* type = Wire<T>::type)
      : widget{}, port{sizeof(heddle_port), flags, name, type, doc, nullptr} {}
  constexpr Input(const char* name, Widget w, const char* doc = "")
      : widget{sizeof(heddle_widget),
               w.kind != 0            ? w.kind
               : w.choices != nullptr ? std::int32_t(HEDDLE_WIDGET_CHOICE)
               : w.source != nullptr  ? std::int32_t(HEDDLE_WIDGET_FILE)
                                      : Wire<T>::widget,
               w.number,
               w.text,
               w.min,
               w.max,
               w.step,
               w.round,
               w.choices,
               w.source,
               w.extra},
        port{sizeof(heddle_port),
             w.flags,
             name,
             w.type != nullptr ? w.type : Wire<T>::type,
             doc,
             &widget} {}
  Input(const Input&) = delete;
  heddle_widget widget;
  heddle_port port;
};

template <class T>
struct Output {
  constexpr explicit Output(const char* name, std::uint32_t flags = 0, const char* doc = "",
                            const char* type = Wire<T>::type)
      : port{sizeof(heddle_port), flags, name, type, doc, nullptr} {}
  Output(const Output&) = delete;
  heddle_port port;
};

// Blocks only: a tensor of the checkpoint, resident on the block's device while it runs.
struct Weight {
  constexpr explicit Weight(const char* name, std::int32_t use = HEDDLE_USE_VECTOR,
                            std::uint32_t flags = 0)
      : slot{sizeof(heddle_slot), flags, name, use} {}
  Weight(const Weight&) = delete;
  heddle_slot slot;
};

template <std::size_t In, std::size_t Out, std::size_t Weights>
struct Ports {
  std::array<const heddle_port*, In> in{};
  std::array<const heddle_port*, Out> out{};
  std::array<const heddle_slot*, Weights> weights{};
};

template <class P>
inline constexpr bool is_input = false;
template <class T>
inline constexpr bool is_input<Input<T>> = true;

template <class... P>
constexpr auto ports(const P&... p) {
  constexpr std::size_t in_count = (std::size_t{is_input<P>} + ... + 0);
  constexpr std::size_t weight_count = (std::size_t{std::same_as<P, Weight>} + ... + 0);
  Ports<in_count, sizeof...(P) - in_count - weight_count, weight_count> list;
  std::size_t i = 0, o = 0, w = 0;
  auto place = [&]<class Q>(const Q& q) {
    if constexpr (is_input<Q>)
      list.in[i++] = &q.port;
    else if constexpr (std::same_as<Q, Weight>)
      list.weights[w++] = &q.slot;
    else
      list.out[o++] = &q.port;
  };
  (place(p), ...);
  return list;
}

// Where a port stands in a desc's list.
template <class P>
std::uint32_t port_position(const P* port, const P* const* list, std::uint32_t count) {
  for (std::uint32_t i = 0; i < count; ++i)
    if (list[i] == port) return i;
  throw Error(HEDDLE_INTERNAL, std::string("'") + port->name + "' is missing from ports(...)");
}

}  // namespace heddle
