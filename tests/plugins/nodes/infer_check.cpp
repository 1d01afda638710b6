#include "tests/plugins/nodes/infer_check.h"

#include <atomic>
#include <functional>
#include <mutex>

#include <boost/test/unit_test.hpp>

#include "engine/base/text.h"
#include "engine/graph/model.h"
#include "engine/program/infer.h"
#include "engine/tensor/dtype.h"

namespace heddle::test {
namespace {

using engine::CallSpec;
using engine::cat;

std::string text_of(const heddle_tensor_info& info) {
  std::string text = cat(engine::dtype_name(engine::DType(info.dtype)), "(");
  for (std::uint32_t i = 0; i < info.rank; ++i) text += cat(i == 0 ? "" : ", ", info.shape[i]);
  return text + ")";
}

template <class Infos>
std::string text_of(const Infos& infos) {
  std::string text = "{";
  for (const auto& [name, info] : infos)
    text += cat(text.size() > 1 ? ", " : "", name, ": ", text_of(info));
  return text + "}";
}

std::string text_of(const CallSpec& call) {
  const auto& model = engine::get_model(*call.model);
  std::string text = cat(model->family, " ", engine::hex(model->identity), ", ", call.step_count,
                         " steps, schedule ", text_of(call.schedule));
  for (const CallSpec::Set& set : call.sets)
    text += cat("; set ", text_of(set.constants), " ", text_of(set.steps));
  return text;
}

void collect(const heddle_value& value, const std::string& path, CallSpec::Infos& tensors) {
  const auto below = [&](const std::string& name) {
    return path.empty() ? name : path + "." + name;
  };
  if (const auto* tensor = std::get_if<engine::Tensor>(&value.content)) {
    tensors.emplace(path, (*tensor)->info);
  } else if (const auto* list = std::get_if<engine::List>(&value.content)) {
    for (std::size_t i = 0; i < list->items.size(); ++i)
      collect(*list->items[i], below(std::to_string(i)), tensors);
  } else if (const auto* record = std::get_if<engine::Record>(&value.content)) {
    for (const auto& [name, inner] : record->fields) collect(*inner, below(name), tensors);
  }
}

// Nodes that planning runs: those flagged, when all that they read comes from such nodes.
std::vector<bool> described(const engine::Graph& graph) {
  std::vector<bool> known(graph.nodes.size(), false);
  for (const engine::NodeIndex n : graph.order) {
    bool all = graph.nodes[n].type->has(HEDDLE_NODE_DESCRIBES);
    engine::for_each_binding(graph.nodes[n], [&](const engine::Binding& binding) {
      const auto* link = std::get_if<engine::Source>(&binding);
      all = all && (link == nullptr || known[link->node]);
    });
    known[n] = all;
  }
  return known;
}

// One after the other: devices may open sessions of several nodes at once.
class Recorder {
 public:
  explicit Recorder(engine::Environment& environment) : environment_(environment) {
    environment.on_open = [this](const engine::Node& node, const CallSpec& call) {
      const std::lock_guard lock(mutex_);
      calls_[node.id].push_back(text_of(call));
    };
  }
  ~Recorder() { environment_.on_open = nullptr; }
  std::map<std::string, std::vector<std::string>> calls() {
    const std::lock_guard lock(mutex_);
    return calls_;
  }

 private:
  engine::Environment& environment_;
  std::mutex mutex_;
  std::map<std::string, std::vector<std::string>> calls_;  // guarded by mutex_
};

}  // namespace

Checked infer_and_run(Engine::Data& engine, const std::string& workflow) {
  const Workflow::Data flow{engine::parse_workflow(workflow, "workflow.json"),
                            engine.plugins.catalog};
  const Ready ready = engine.prepare(flow, {Describe::strictly});
  const engine::Graph& graph = ready.graph;
  engine::RunRequest request;
  request.graph = &graph;
  request.plan = &ready.plan;
  for (const engine::NodeIndex n : graph.order)
    for (std::uint32_t o = 0; o < graph.nodes[n].type->output_count(); ++o)
      request.fetch.push_back({n, o});

  Checked checked;
  Recorder recorder(*engine.environment);
  engine::Observer quiet;
  engine::RunControl control;
  const engine::RunResult run = engine::execute(request, *engine.environment, quiet, control);
  checked.made.calls = recorder.calls();

  const std::vector<bool> known = described(graph);
  engine::Facts facts;
  for (const auto& [source, value] : run.fetched)
    if (known[source.node]) facts.emplace(source, value);
  const engine::Inferred inferred = engine::infer(graph, engine.environment->host, facts);
  for (const engine::NodeIndex n : graph.order) {
    const engine::Node& node = graph.nodes[n];
    const engine::NodeSpec& spec = inferred.nodes[n];
    checked.inferred.host_scratch[node.id] = spec.host_scratch_bytes;
    for (const CallSpec& call : spec.calls)
      checked.inferred.calls[node.id].push_back(text_of(call));
    if (known[n] || node.type->name().starts_with("test.") ||
        node.type->name().starts_with("demo."))
      continue;
    for (std::uint32_t o = 0; o < spec.outputs.size(); ++o) {
      const std::string name = cat(node.id, ".", node.type->output(o).name);
      checked.inferred.outputs[name] = text_of(spec.outputs[o].tensors);
      CallSpec::Infos tensors;
      collect(*run.fetched.at({n, o}), "", tensors);
      checked.made.outputs[name] = text_of(tensors);
    }
  }
  return checked;
}

void check_inference(Engine::Data& engine, const std::string& workflow) {
  const Checked checked = infer_and_run(engine, workflow);
  BOOST_TEST(!checked.made.outputs.empty());
  for (const auto& [node, calls] : checked.made.calls) {
    const auto inferred = checked.inferred.calls.find(node);
    BOOST_REQUIRE_MESSAGE(inferred != checked.inferred.calls.end(),
                          node << " called a model and had not told so: " << calls.front());
    BOOST_TEST(inferred->second == calls, boost::test_tools::per_element());
  }
  for (const auto& [node, calls] : checked.inferred.calls)
    BOOST_TEST(checked.made.calls.contains(node),
               node << " told of a call and made none: " << calls.front());
  for (const auto& [output, tensors] : checked.made.outputs)
    BOOST_TEST(checked.inferred.outputs.at(output) == tensors,
               output << ": told " << checked.inferred.outputs.at(output) << ", made " << tensors);
}

}  // namespace heddle::test
