#include "engine/resources/forecast.h"

#include <algorithm>

#include "engine/graph/model.h"

namespace heddle::engine {

namespace {

void find_models(const heddle_value& value, std::vector<Hash128>& found) {
  if (const auto* model = std::get_if<std::shared_ptr<const Model>>(&value.content))
    found.push_back((*model)->identity);
  else if (const auto* list = std::get_if<List>(&value.content))
    for (const Value& item : list->items) find_models(*item, found);
  else if (const auto* record = std::get_if<Record>(&value.content))
    for (const auto& [name, field] : record->fields) find_models(*field, found);
}

}  // namespace

NextUses Forecast::next_uses() const {
  NextUses next;
  const auto runs = runs_.lock();
  for (const RunForecast* run : *runs) {
    const auto state = run->state_.lock();
    for (const auto& [reader, models] : state->uses) {
      const std::uint64_t rank = state->rank[reader];
      const std::uint64_t distance = rank - std::min<std::uint64_t>(rank, state->at);
      for (const Hash128& model : models) {
        const auto [at, is_new] = next.try_emplace(model, distance);
        if (!is_new) at->second = std::min(at->second, distance);
      }
    }
  }
  return next;
}

RunForecast::RunForecast(Forecast& forecast, const Graph& graph,
                         const std::vector<NodeIndex>& order)
    : forecast_(forecast), graph_(graph), order_(order) {
  forecast_.runs_.lock()->push_back(this);
}

RunForecast::~RunForecast() { std::erase(*forecast_.runs_.lock(), this); }

void RunForecast::find_readers(State& state) const {
  state.readers.resize(graph_.nodes.size());
  state.rank.resize(graph_.nodes.size());
  for (std::uint32_t rank = 0; rank < order_.size(); ++rank) state.rank[order_[rank]] = rank;
  for (NodeIndex n = 0; n < graph_.nodes.size(); ++n) {
    const auto read = [&](const Binding& binding) {
      const auto* link = std::get_if<Source>(&binding);
      if (link != nullptr && link->node < state.readers.size())
        state.readers[link->node].push_back(n);
    };
    for (const Binding& input : graph_.nodes[n].inputs) read(input);
    for (const auto& [name, binding] : graph_.nodes[n].extra) read(binding);
  }
}

void RunForecast::note_models(NodeIndex node, std::span<const Value> outputs) {
  if (node >= graph_.nodes.size()) return;
  std::vector<Hash128> models;
  for (const Value& output : outputs)
    if (output && kind_of(*output) >= HEDDLE_KIND_LIST) find_models(*output, models);
  if (models.empty()) return;
  const auto state = state_.lock();
  if (state->readers.empty()) find_readers(*state);
  for (const NodeIndex reader : state->readers[node]) {
    std::vector<Hash128>& of = state->uses[reader];
    of.insert(of.end(), models.begin(), models.end());
  }
  any_.store(true, std::memory_order_relaxed);
}

void RunForecast::note_began(NodeIndex node) {
  if (node >= graph_.nodes.size()) return;
  const auto state = state_.lock();
  state->at = std::max(state->at, state->rank[node]);
}

void RunForecast::note_done(NodeIndex node) { state_.lock()->uses.erase(node); }

}  // namespace heddle::engine
