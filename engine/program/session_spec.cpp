#include "engine/program/session_spec.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "engine/files/joined_dtype.h"
#include "engine/graph/model.h"
#include "engine/program/op_work.h"
#include "engine/program/weight_sources.h"
#include "engine/program/workload.h"
#include "engine/tensor/call.h"
#include "engine/tensor/dtype.h"
#include "engine/tensor/shape.h"

namespace heddle::engine {

namespace {

// The weights of a model's nodes, looked up once for each node.
class ModelSources {
 public:
  ModelSources(std::shared_ptr<const Model> model, std::vector<double> fractions)
      : model_(std::move(model)), fractions_(std::move(fractions)) {}

  std::optional<WeightSource> of(NodeIndex n, std::uint32_t number, std::uint32_t rank) {
    const Node& node = model_->graph->nodes[n];
    const auto [at, is_new] = by_node_.try_emplace(n);
    if (is_new) at->second = weight_sources(*model_, node);
    return numbered_source(at->second, node, number, fractions_, rank);
  }

 private:
  const std::shared_ptr<const Model> model_;
  const std::vector<double> fractions_;
  std::map<NodeIndex, std::vector<std::optional<WeightSource>>> by_node_;
};

bool has_pieces_beside(const Model& model) {
  if (model.patches != nullptr) return true;
  return model.checkpoint != nullptr &&
         std::ranges::any_of(model.checkpoint->tensors(), [](const TensorView& tensor) {
           return column_factors(tensor) != nullptr;
         });
}

}  // namespace

SessionSpec session_spec(SessionSetup setup) {
  const CallSpec& call = setup.call;
  SessionSpec spec{call.sets, call.schedule, call.step_count, {}, setup.home, setup.placement, {}};
  for (std::uint32_t d = 0; d < setup.devices.size(); ++d) {
    SessionDevice& device = setup.devices[d];
    spec.device_slots.push_back({std::move(device.name), device.compute,
                                 device.host_visible ? 0 : d + 1, device.budget, device.rates, 0,
                                 device.captures_other_streams});
  }
  if (setup.are_peers) mark_peers(spec, spec.placement.devices.size(), setup.are_peers);
  spec.donors = std::move(setup.donors);
  spec.pinned_bytes = setup.pinned_bytes;
  const std::shared_ptr<const Model> model = get_model(*call.model);
  spec.has_factors = has_pieces_beside(*model);
  spec.is_scaled_fp8 = is_scaled_fp8(*model);
  const auto sources = std::make_shared<ModelSources>(model, setup.placement.rank_fractions);
  const auto layout = [sources, layout = std::move(setup.layout)](
                          std::uint32_t device_slot, NodeIndex n, std::uint32_t number,
                          std::uint32_t rank) -> std::optional<heddle_weight_layout> {
    const auto source = sources->of(n, number, rank);
    return source ? std::optional(layout(device_slot, *source)) : std::nullopt;
  };
  spec.weight = [layout](std::uint32_t device_slot, NodeIndex n, std::uint32_t number,
                         std::uint32_t rank) {
    const auto made = layout(device_slot, n, number, rank);
    return made ? std::optional(made->info) : std::nullopt;
  };
  spec.weight_bytes = [layout](std::uint32_t device_slot, NodeIndex n, std::uint32_t number,
                               std::uint32_t rank) {
    const auto made = layout(device_slot, n, number, rank);
    return made ? made->bytes : 0;
  };
  spec.file_bytes = [sources](NodeIndex n, std::uint32_t number, std::uint32_t rank) {
    const auto source = sources->of(n, number, rank);
    std::uint64_t bytes = 0;
    if (!source || is_made(*source)) return bytes;
    for (const FilePart& part : file_parts(*source)) bytes += part.bytes;
    return bytes;
  };
  return spec;
}

std::vector<std::uint32_t> session_devices(const CallPlacement& placement, std::uint32_t home) {
  std::vector<std::uint32_t> devices = placement.devices;
  if (std::ranges::find(devices, home) == devices.end()) devices.push_back(home);
  return devices;
}

heddle_weight_layout plain_layout(const WeightSource& source, heddle_dtype compute) {
  const heddle_tensor_info joined = source.info();
  const heddle_tensor_info info =
      make_info(plain_dtype(DType(joined.dtype), source.use, joined.rank, compute),
                std::vector(joined.shape, joined.shape + joined.rank));
  return {sizeof(heddle_weight_layout), info, dense_bytes(info)};
}

void mark_peers(SessionSpec& spec, std::size_t count,
                const std::function<bool(std::uint32_t, std::uint32_t)>& are_peers) {
  if (!has(spec.placement.parallel, kRanksExchange)) return;
  const std::size_t ranks = spec.placement.ranks();
  for (std::size_t first = 0; first + ranks <= count; first += ranks) {
    bool all = true;
    // Whoever reads another's memory waits for its device slot alone: nobody else writes there.
    for (std::size_t a = first; a < first + ranks; ++a)
      all = all && std::ranges::count(spec.device_slots, spec.device_slots[a].memory,
                                      &SessionSpec::DeviceSlot::memory) == 1;
    for (std::size_t a = first; a < first + ranks; ++a)
      for (std::size_t b = first; b < first + ranks; ++b)
        all = all && (a == b || are_peers(std::uint32_t(a), std::uint32_t(b)));
    for (std::size_t p = first; all && p < first + ranks; ++p)
      spec.device_slots[p].peers = std::uint32_t(1 + first / ranks);
  }
}

}  // namespace heddle::engine
