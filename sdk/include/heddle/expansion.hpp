// heddle/expansion.hpp - new nodes at run time: a node flagged HEDDLE_NODE_EXPANDS gives a graph of
// new nodes, and links into it instead of values.
//
//   void execute(heddle::Context& ctx) {
//     heddle::Expansion graph(ctx);
//     const auto sum = graph.node("demo.add").set("a", ctx[a]).link("b", {"3", 0});
//     graph.give(out, sum.out());
//   }
#pragma once

#include "node.hpp"

namespace [[gnu::visibility("hidden")]] heddle {

// One graph of a call. Ids of its nodes begin with its prefix,
// "<node>.<call>.<graph>."; those that are named by nobody are numbered.
class Expansion {
 public:
  struct Link {
    std::string node;  // id
    std::uint32_t output = 0;
  };

  class Node {
   public:
    Node(heddle_ctx* raw, std::uint32_t number, std::string id)
        : raw_(raw), number_(number), id_(std::move(id)) {}
    template <class T>
    Node& set(const std::string& input, T&& value) {
      check(service<heddle_expansion_service>().set_input(raw_, number_, input.c_str(),
                                                          value_of(std::forward<T>(value)).raw()));
      return *this;
    }
    Node& link(const std::string& input, const Link& from) {
      check(service<heddle_expansion_service>().link_input(raw_, number_, input.c_str(),
                                                           from.node.c_str(), from.output));
      return *this;
    }
    Link out(std::uint32_t output = 0) const { return {id_, output}; }
    const std::string& id() const { return id_; }

   private:
    heddle_ctx* raw_;
    std::uint32_t number_;
    std::string id_;
  };

  explicit Expansion(Context& ctx) : ctx_(ctx) {
    const char* prefix = nullptr;
    check(service<heddle_expansion_service>().prefix(ctx.raw(), &prefix));
    prefix_ = prefix;
  }
  const std::string& prefix() const { return prefix_; }

  // `name`: what follows the prefix in its id. `display`: the id that people
  // see; empty: that of the node that expands.
  Node node(const std::string& class_type, const std::string& name = "",
            const std::string& display = "") {
    std::string id = prefix_ + (name.empty() ? std::to_string(++numbered_) : name);
    std::uint32_t number = 0;
    check(service<heddle_expansion_service>().add_node(ctx_.raw(), id.c_str(), class_type.c_str(),
                                                       display.empty() ? nullptr : display.c_str(),
                                                       &number));
    return Node(ctx_.raw(), number, std::move(id));
  }

  // The output of this node is what the link gives.
  template <class T>
  void give(const Output<T>& output, const Link& from) {
    check(service<heddle_expansion_service>().link_output(ctx_.raw(), ctx_[output].index,
                                                          from.node.c_str(), from.output));
  }

 private:
  Context& ctx_;
  std::string prefix_;
  int numbered_ = 0;
};

// A node of the run, whoever brought it, as heddle_workflow_service tells it;
// empty: there is none.
inline Value find_node(Context& ctx, const std::string& id) {
  heddle_value* found = nullptr;
  check(service<heddle_workflow_service>().node(ctx.raw(), id.c_str(), &found));
  return Value::adopt(found);
}
// A link as heddle_workflow_service and HEDDLE_PORT_LINK give it.
inline Expansion::Link link_of(const Value& pair) {
  return {pair.item(0).as<std::string>(), std::uint32_t(pair.item(1).as<std::int64_t>())};
}

}  // namespace gnu::visibility("hidden")]]heddle
