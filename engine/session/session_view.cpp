#include "engine/session/session_view.h"

#include "engine/base/text.h"
#include "engine/program/weight_slot.h"
#include "engine/program/weight_sources.h"

namespace heddle::engine {

WeightSource SessionView::weight_source(const SessionStorage& storage) const {
  const Node& node = graph().nodes[storage.node];
  return numbered_source(weight_sources(*context.model, node), node, storage.slot,
                         device_slots.placement.rank_fractions, storage.rank)
      .value();
}

WorkWatch SessionView::weight_watch(const SessionStorage& storage) const {
  if (context.timeline == nullptr) return {};
  const Node& node = graph().nodes[storage.node];
  return context.timeline->watch("page-in", cat(node.id, ".", weight_name(node, storage.slot)));
}

WorkWatch SessionView::transfer_watch(const PlannedTransfer& transfer) const {
  if (context.timeline == nullptr) return {};
  const Source& value = transfer.value;
  const std::string& name =
      value.node == kGraphInputs ? graph().inputs[value.port].name : graph().nodes[value.node].id;
  return context.timeline->watch("transfer", cat(name, " to ", state(transfer.to).device().name()));
}

}  // namespace heddle::engine
