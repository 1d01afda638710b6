// What a call asks for instead of giving it, in a message.
#include "engine/base/text.h"
#include "engine/isolate/worker_call.h"

namespace heddle::engine {

namespace {

void write_link(BytesWriter& to, const NewLink& link) {
  to.text(link.node);
  to.number(link.output);
}

NewLink read_link(BytesReader& from) {
  std::string node(from.text());
  return {std::move(node), from.number<std::uint32_t>()};
}

}  // namespace

void write_new_nodes(BytesWriter& to, const NewNodes& nodes, ValueEnd& end) {
  to.number(nodes.graphs);
  to.number(std::uint32_t(nodes.nodes.size()));
  for (const NewNode& node : nodes.nodes) {
    for (const std::string* text : {&node.id, &node.class_type, &node.display}) to.text(*text);
    to.number(std::uint32_t(node.inputs.size()));
    for (const auto& [name, given] : node.inputs) {
      to.text(name);
      const auto* link = std::get_if<NewLink>(&given);
      to.flag(link != nullptr);
      if (link != nullptr)
        write_link(to, *link);
      else
        write_value(to, std::get<Value>(given).get(), end);
    }
  }
  to.number(std::uint32_t(nodes.outputs.size()));
  for (const auto& [output, link] : nodes.outputs) {
    to.number(output);
    write_link(to, link);
  }
}

NewNodes read_new_nodes(BytesReader& from, ValueEnd& end) {
  NewNodes nodes;
  nodes.graphs = from.number<std::uint32_t>();
  for (std::uint32_t left = from.count(); left > 0; --left) {
    NewNode node;
    for (std::string* text : {&node.id, &node.class_type, &node.display}) *text = from.text();
    for (std::uint32_t inputs = from.count(); inputs > 0; --inputs) {
      std::string name(from.text());
      if (from.flag()) {
        node.inputs.emplace_back(std::move(name), read_link(from));
        continue;
      }
      Value value = read_value(from, end);
      if (!value)
        throw Error(Code::internal, cat("a worker gives the input ", quote(name), " no value"));
      node.inputs.emplace_back(std::move(name), std::move(value));
    }
    nodes.nodes.push_back(std::move(node));
  }
  for (std::uint32_t left = from.count(); left > 0; --left) {
    const auto output = from.number<std::uint32_t>();
    nodes.outputs.emplace_back(output, read_link(from));
  }
  return nodes;
}

}  // namespace heddle::engine
