#include "engine/plan/infer.h"

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/device/device.h"

namespace heddle::core {

Inferred infer(const Graph& graph, const heddle_host* host, const Facts& facts) {
  Inferred result;
  result.nodes.resize(graph.nodes.size());
  for (const NodeIndex n : graph.order) {
    const Node& node = graph.nodes[n];
    heddle_infer question{graph, node, result.nodes, {}};
    question.answer.outputs.resize(node.type->output_count());
    for (std::uint32_t o = 0; o < node.type->output_count(); ++o)
      if (const auto fact = facts.find({n, o}); fact != facts.end()) question.answer.outputs[o].value = fact->second;
    if (node.type->desc().infer != nullptr) {
      try {
        throw_status(node.type->desc().infer(host, &question), "");
      } catch (Error& error) {
        error.at(graph.name_of(n));
        throw;
      }
    }
    for (std::uint32_t o = 0; o < node.type->output_count(); ++o)
      if (question.answer.outputs[o].tensors.empty() && !question.answer.outputs[o].value)
        result.pending.push_back({n, node.type->output(o).name});
    result.nodes[n] = std::move(question.answer);
  }
  return result;
}

}  // namespace heddle::core
