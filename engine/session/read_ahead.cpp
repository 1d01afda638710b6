#include "engine/session/read_ahead.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/log.h"
#include "engine/base/text.h"
#include "engine/graph/surely_run.h"
#include "engine/memory/weight_rows.h"
#include "engine/program/weight_sources.h"

namespace heddle::engine {

namespace {

// Each file's bytes once, in the order of blocks. Empty where the device has the model: of what
// goes for others the end goes first, so its last weights are there with all of them.
std::vector<FilePart> missing_parts(const Model& model, const RunDevice& device) {
  const Hash128 checkpoint = model.checkpoint->identity();
  const std::vector<Node>& nodes = model.graph->nodes;
  const auto is_here = [&](const WeightSource& source) {
    return device.weights->has(source, checkpoint);
  };
  for (std::size_t n = nodes.size(); n-- > 0;) {
    const std::vector<WeightSource> last = weights_of(model, nodes[n]);
    if (last.empty()) continue;
    if (std::ranges::all_of(last, is_here)) return {};
    break;
  }
  std::set<Hash128> seen;
  std::vector<FilePart> parts;
  for (const Node& node : nodes)
    for (const WeightSource& source : weights_of(model, node))
      if (seen.insert(source.key(checkpoint)).second && !is_here(source))
        std::ranges::move(loaded_parts(source, *device.state), std::back_inserter(parts));
  return parts;
}

}  // namespace

ReadAhead::ReadAhead(const Graph& graph, const Plan& plan, std::span<const Source> wanted,
                     Environment& environment, Timeline* timeline)
    : plan_(plan), environment_(environment), timeline_(timeline) {
  for (const NodeIndex n : plan.order.empty() ? graph.order : plan.order) {
    const Assignment& assignment = plan.assignments[n];
    if (!assignment.on_host && !assignment.calls.empty()) callers_.push_back(n);
  }
  if (callers_.empty()) return;
  const std::vector<bool> runs = surely_run(graph, wanted);
  std::erase_if(callers_, [&](NodeIndex n) { return !runs[n]; });
  if (callers_.size() < 2) callers_.clear();  // nothing comes behind another
}

void ReadAhead::note_began(NodeIndex node) {
  const auto state = state_.lock();
  if (calls_models(node)) state->under_way.insert(node);
  for (const NodeIndex next : callers_) {
    if (state->under_way.contains(next) || state->done.contains(next)) continue;
    if (state->expected.contains(next)) return;
    std::vector<Expectation> expected;
    try {
      expected = expect(plan_.assignments[next], models_of(state->under_way));
    } catch (const Error& error) {  // whoever reads it then is told
      log(Level::debug, cat("nothing is read ahead: ", error.full()));
    }
    if (expected.empty()) continue;  // what it calls is there, or on its way
    state->expected[next] = std::move(expected);
    return;
  }
}

void ReadAhead::note_done(NodeIndex node) {
  if (!calls_models(node)) return;
  std::vector<Expectation> ended;  // behind the lock: it waits for reads under way
  const auto state = state_.lock();
  state->under_way.erase(node);
  state->done.insert(node);  // also where it came from the cache
  if (const auto at = state->expected.find(node); at != state->expected.end()) {
    ended = std::move(at->second);
    state->expected.erase(at);
  }
}

std::set<Hash128> ReadAhead::models_of(const std::set<NodeIndex>& nodes) const {
  std::set<Hash128> models;
  for (const NodeIndex node : nodes)
    for (const PlacedCall& call : plan_.assignments[node].calls)
      if (call.of != nullptr) models.insert(call.of->identity);
  return models;
}

std::vector<Expectation> ReadAhead::expect(const Assignment& assignment,
                                           std::set<Hash128> models) const {
  std::vector<Expectation> expected;
  for (const PlacedCall& call : assignment.calls) {
    if (call.of == nullptr || !models.insert(call.of->identity).second) continue;
    const std::vector<std::uint32_t>& devices = call.placement.devices;
    const RunDevice& device =
        environment_.devices[devices.empty() ? assignment.device : devices.front()];
    HostWeights* const host = device.state->host_weights();
    if (host == nullptr) continue;
    const std::vector<FilePart> parts = missing_parts(*call.of, device);
    if (!parts.empty())
      expected.push_back(
          host->expect_later(parts, device.state->share_device(),
                             timeline_ == nullptr ? ReadWatch() : timeline_->read_watch()));
  }
  return expected;
}

}  // namespace heddle::engine
