#include "engine/program/workload.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "engine/base/error.h"
#include "engine/base/hash.h"
#include "engine/base/text.h"
#include "engine/files/checkpoint.h"
#include "engine/files/joined_dtype.h"
#include "engine/program/tracer.h"
#include "engine/program/weight_slot.h"
#include "engine/tensor/dtype.h"
#include "engine/tensor/shape.h"
#include "heddle/abi/model.h"
#include "heddle/abi/node.h"

namespace heddle::engine {

namespace {

constexpr std::int64_t kLeastShardedSide = 256;  // a smaller matrix is not worth its exchange

using Info = std::optional<heddle_tensor_info>;

heddle_tensor_info row_major(heddle_tensor_info info) {
  std::fill(std::begin(info.stride), std::end(info.stride), 0);
  return checked_info(info, "tensor");
}

heddle_tensor_info row_of(heddle_tensor_info info) {
  if (info.rank > 0) info.shape[0] = 1;
  return row_major(info);
}

void add_info(Hasher& hasher, const Info& info) {
  if (!info) {
    hasher.add(-1);
    return;
  }
  hasher.add(info->dtype).add(info->layout).add(info->rank);
  for (std::uint32_t i = 0; i < info->rank; ++i) hasher.add(info->shape[i]).add(info->stride[i]);
}

class Counter {
 public:
  Counter(const Model& model, const CallSpec& spec, heddle_dtype compute)
      : model_(model),
        graph_(*model.graph),
        spec_(spec),
        compute_(compute),
        phases_(node_phases(graph_)),
        is_scaled_fp8_(is_scaled_fp8(model)),
        values_(spec.sets.size()) {}

  CallLoad weights_only() {
    load_.set_count = 0;
    load_.blocks.resize(graph_.nodes.size());
    find_groups();
    count_weights();
    return std::move(load_);
  }

  CallLoad run() {
    load_.set_count = std::uint32_t(spec_.sets.size());
    load_.step_count = spec_.step_count;
    load_.blocks.resize(graph_.nodes.size());
    read_inputs();
    find_groups();
    count_weights();
    for (const NodeIndex n : graph_.order)
      for (std::uint32_t set = 0; set < spec_.sets.size(); ++set) count_work(n, set);
    return std::move(load_);
  }

 private:
  void read_inputs() {
    load_.input_bytes.assign(spec_.sets.size(),
                             std::vector<std::uint64_t>(graph_.inputs.size(), 0));
    bool any_batch = false;
    std::int64_t batch = 0;
    for (std::uint32_t set = 0; set < spec_.sets.size(); ++set)
      for (std::uint32_t i = 0; i < graph_.inputs.size(); ++i) {
        const Info info = input_info(i, set);
        const GraphInput& input = graph_.inputs[i];
        if (!info) {
          if ((input.flags & HEDDLE_INPUT_OPTIONAL) == 0)
            throw Error(Code::invalid_argument,
                        cat("the model's input ", quote(input.name), " is missing"));
          continue;
        }
        load_.input_bytes[set][i] =
            dense_bytes(input_phase(input) == Phase::precomputed ? row_of(*info) : *info);
        if ((input.flags & HEDDLE_INPUT_BATCH) == 0 || info->rank == 0) continue;
        batch = any_batch ? std::max(batch, info->shape[0]) : info->shape[0];
        any_batch = true;
      }
    load_.batch = any_batch ? std::max<std::int64_t>(batch, 1) : 1;
  }

  Info input_info(std::uint32_t input, std::uint32_t set) const {
    const GraphInput& i = graph_.inputs[input];
    const Phase phase = input_phase(i);
    const auto& given = phase == Phase::loop_invariant ? spec_.sets[set].constants
                        : phase == Phase::precomputed  ? spec_.schedule
                                                       : spec_.sets[set].steps;
    const auto found = given.find(i.name);
    if (found == given.end()) return {};
    return phase == Phase::per_step ? row_major(found->second) : found->second;
  }

  void find_groups() {
    std::map<std::string_view, std::uint32_t> index;
    for (const NodeIndex n : graph_.order) {
      const std::string_view group = group_of(graph_.nodes[n].id);
      const auto [at, is_new] = index.try_emplace(group, std::uint32_t(load_.groups.size()));
      if (is_new) load_.groups.emplace_back(group);
      load_.blocks[n].group = at->second;
      load_.blocks[n].phase = phases_[n];
    }
    load_.main = Phase::loop_invariant;
    for (const NodeIndex n : graph_.order) load_.main = std::max(load_.main, phases_[n]);
  }

  void count_weights() {
    for (const NodeIndex n : graph_.order) count_weights(n);
    for (const auto& [slot, count] : whole_)
      load_.whole.push_back(count == 1 ? slot : cat(slot, " (", count, ")"));
  }

  void count_weights(NodeIndex n) {
    const Node& node = graph_.nodes[n];
    BlockLoad& block = load_.blocks[n];
    auto& infos = weights_.emplace(n, std::vector<Info>()).first->second;
    for (std::uint32_t slot = 0; slot < node.weights.size(); ++slot)
      infos.push_back(weight_info(model_, node, slot, compute_));
    const SlotFactors& factors =
        factors_.emplace(n, slot_factors(model_, node, compute_)).first->second;
    block.by_rows = divides_rows(node, infos) && block.phase == Phase::per_step;
    for (std::uint32_t i = 0; i < node.inputs.size() && block.phase == Phase::per_step; ++i)
      block.by_tokens |= std::holds_alternative<Source>(node.inputs[i]) &&
                         (node.type->input(i).flags & HEDDLE_PORT_SEQUENCE) != 0;
    std::map<std::uint32_t, std::uint32_t>& device_slots = weight_places_[n];
    for (std::uint32_t slot = 0; slot < node.weights.size(); ++slot) {
      if (!infos[slot]) continue;
      const auto at = std::uint32_t(block.slot_bytes.size());
      std::vector<BlockLoad::SlotBytes> pieces{
          {dense_bytes(*infos[slot]), file_bytes(model_, node, slot)}};
      device_slots[slot] = at;
      if (slot < factors.size() && factors[slot])
        for (const WeightPiece piece : kPiecesBeside) {
          if (!factors[slot]->of(piece)) continue;
          device_slots[weight_number(node, {slot, piece})] = at + std::uint32_t(pieces.size());
          pieces.push_back({dense_bytes(*factors[slot]->of(piece)), 0});
        }
      std::uint64_t bytes = 0;
      for (const BlockLoad::SlotBytes& piece : pieces) bytes += piece.bytes;
      block.weight_bytes += bytes;
      block.slot_bytes.insert(block.slot_bytes.end(), pieces.begin(), pieces.end());
      block.weights += std::uint32_t(pieces.size());
      if (block.by_rows && node.shards[slot].axis >= 0) {
        count_whole_scale(n, slot);
        continue;
      }
      block.whole_bytes += bytes;
      block.whole_weights += std::uint32_t(pieces.size());
      ++whole_[node.type->slot(slot).name];
    }
    load_.weight_bytes += block.weight_bytes;
    load_.whole_bytes += block.whole_bytes;
    load_.weights += block.weights;
    load_.whole_weights += block.whole_weights;
  }

  // Each device that has some rows of a matrix has the scales of all its columns.
  void count_whole_scale(NodeIndex n, std::uint32_t slot) {
    const Node& node = graph_.nodes[n];
    const SlotFactors& factors = factors_.at(n);
    if (node.shards[slot].axis != 0 || slot >= factors.size() || !factors[slot] ||
        !factors[slot]->scale)
      return;
    load_.blocks[n].whole_bytes += dense_bytes(*factors[slot]->scale);
    ++load_.blocks[n].whole_weights;
    ++whole_[weight_name(node, weight_number(node, {slot, WeightPiece::scale}))];
  }

  // All of a block's matrices that its family allows to be divided are worth it, or none is.
  static bool divides_rows(const Node& node, const std::vector<Info>& infos) {
    bool any = false;
    for (std::uint32_t slot = 0; slot < node.shards.size(); ++slot) {
      const Info& info = infos[slot];
      if (node.shards[slot].axis < 0 || !info || info->rank != 2) continue;
      if (std::min(info->shape[0], info->shape[1]) < kLeastShardedSide) return false;
      if (cuts_blocks(node.shards[slot], *info)) return false;
      any = true;
    }
    return any;
  }

  // There has to be more than one token, and what does not change with the steps is whole
  // everywhere.
  bool has_tokens(NodeIndex n, std::uint32_t set) const {
    const Node& node = graph_.nodes[n];
    for (std::uint32_t i = 0; i < node.inputs.size(); ++i) {
      const auto* link = std::get_if<Source>(&node.inputs[i]);
      if (link == nullptr || (node.type->input(i).flags & HEDDLE_PORT_SEQUENCE) == 0) continue;
      if (link->node == kGraphInputs && phase_of(*link) != Phase::per_step) return false;
      const Info info = read_by(*link, set, phases_[n], 0);
      if (!info) continue;
      if (info->rank < 2 || info->shape[info->rank - 2] < 2) return false;
    }
    return true;
  }

  Phase phase_of(const Source& source) const {
    return source.node == kGraphInputs ? input_phase(graph_.inputs[source.port])
                                       : phases_[source.node];
  }

  // What a block of `rate` sees of a value: a step sees one row of what exists for all steps.
  Info read_by(const Source& source, std::uint32_t set, Phase phase, std::uint32_t flags) const {
    Info info;
    if (source.node == kGraphInputs) {
      info = input_info(source.port, set);
    } else {
      const auto found = values_[set].find(source.node);
      if (found == values_[set].end())
        throw Error(Code::internal,
                    cat("block ", graph_.nodes[source.node].id, " is read before it runs"));
      info = (*found->second)[source.port];
    }
    const bool row = phase_of(source) == Phase::precomputed &&
                     (phase == Phase::per_step || (flags & HEDDLE_PORT_SHAPE) != 0);
    return info && row ? Info(row_of(*info)) : info;
  }

  void count_work(NodeIndex n, std::uint32_t set) {
    const Node& node = graph_.nodes[n];
    BlockSpec spec{&node, compute_, "any", {}, weights_[n], factors_[n]};
    Hasher key;
    bool comparable = true;
    key.add(reinterpret_cast<std::uintptr_t>(node.type.get()));
    for (std::uint32_t i = 0; i < node.inputs.size(); ++i) {
      const auto* link = std::get_if<Source>(&node.inputs[i]);
      const auto* literal = std::get_if<Value>(&node.inputs[i]);
      const Info& info = spec.inputs.emplace_back(
          link == nullptr ? Info() : read_by(*link, set, phases_[n], node.type->input(i).flags));
      if (link != nullptr && !info && (node.type->input(i).flags & HEDDLE_PORT_OPTIONAL) == 0)
        throw Error(Code::invalid_argument,
                    cat("block ", node.id, ", input ", quote(node.type->input(i).name),
                        ": the model's optional input it reads was not given"));
      add_info(key, info);
      key.add(literal != nullptr);
      if (literal != nullptr) comparable = comparable && hash_value(**literal, key);
    }
    for (const Info& info : spec.weights) add_info(key, info);
    for (const std::optional<FactorInfos>& factors : spec.factors) {
      add_info(key, factors ? Info(factors->down) : Info());
      add_info(key, factors ? Info(factors->up) : Info());
    }
    if (!comparable) key.add(n);
    const Hash128 hash = key.finish();
    auto found = traced_.find(hash);
    if (found == traced_.end()) found = traced_.emplace(hash, trace(spec, n)).first;
    load_.blocks[n].by_tokens &= has_tokens(n, set);
    load_.blocks[n].work.push_back(found->second.work);
    values_[set][n] = found->second.outputs;
  }

  struct Traced {
    std::uint32_t work = 0;
    std::shared_ptr<const std::vector<Info>> outputs;
  };
  Traced trace(const BlockSpec& spec, NodeIndex n) {
    const BlockProgram program = trace_block(spec);
    BlockWork work{program.cost.flops,
                   program.cost.bytes,
                   block_ops(program, *spec.node, is_scaled_fp8_, weight_places_.at(n)),
                   peak_bytes(program),
                   {}};
    auto outputs = std::make_shared<std::vector<Info>>();
    for (const Operand& o : program.outputs) {
      outputs->push_back(o.info);
      work.output_bytes.push_back(dense_bytes(o.info));
    }
    load_.works.push_back(std::move(work));
    return {std::uint32_t(load_.works.size() - 1), std::move(outputs)};
  }

  const Model& model_;
  const Graph& graph_;
  const CallSpec& spec_;
  const heddle_dtype compute_;
  const std::vector<Phase> phases_;
  const bool is_scaled_fp8_;
  std::vector<std::unordered_map<NodeIndex, std::shared_ptr<const std::vector<Info>>>>
      values_;  // by set and node: its outputs
  std::unordered_map<NodeIndex, std::vector<Info>> weights_;
  std::unordered_map<NodeIndex, SlotFactors> factors_;
  // By node, of the weights that are given: number, index in slot_bytes.
  std::unordered_map<NodeIndex, std::map<std::uint32_t, std::uint32_t>> weight_places_;
  std::unordered_map<Hash128, Traced> traced_;
  std::map<std::string, std::uint32_t> whole_;  // slots, and in how many blocks
  CallLoad load_;
};

// As devices keep them; what they widen is counted in the compute type.
bool stays_small(DType dtype, std::int32_t use, std::size_t rank) {
  if (is_block_format(dtype))
    return (use == HEDDLE_USE_LINEAR || use == HEDDLE_USE_TABLE) && rank == 2;
  return use == HEDDLE_USE_LINEAR && (dtype == DType::f8_e4m3 || dtype == DType::f8_e5m2);
}

}  // namespace

heddle_dtype plain_dtype(DType joined, std::int32_t use, std::size_t rank, heddle_dtype compute) {
  return stays_small(joined, use, rank) || !is_floating(joined) ? heddle_dtype(joined) : compute;
}

std::optional<heddle_tensor_info> weight_info(const Model& model, const Node& node,
                                              std::uint32_t slot, heddle_dtype compute) {
  if (const WeightSlot of = weight_slot(node, slot); of.piece != WeightPiece::whole) {
    const SlotFactors factors = slot_factors(model, node, compute);
    if (of.slot >= factors.size() || !factors[of.slot]) return {};
    return factors[of.slot]->of(of.piece);
  }
  const std::vector<WeightPart>& parts = node.weights[slot];
  if (parts.empty()) return {};
  std::vector<std::int64_t> shape;
  std::int64_t rows = 0;
  std::vector<const TensorView*> tensors;
  for (const WeightPart& part : parts) {
    const TensorView& tensor = model.checkpoint->at(part.tensor);
    if (shape.empty()) shape = tensor.shape;
    tensors.push_back(&tensor);
    rows += (part.end < 0 ? (tensor.shape.empty() ? 1 : tensor.shape[0]) : part.end) - part.begin;
  }
  if (!shape.empty()) shape[0] = rows;
  if (parts.front().frame != 0) shape.erase(shape.begin() + 2);
  if (parts.front().frame < 0) std::swap(shape[0], shape[1]);
  const std::int32_t use = node.type->slot(slot).use;
  return make_info(plain_dtype(joined_dtype(tensors, use), use, shape.size(), compute), shape);
}

bool cuts_blocks(const WeightShard& shard, const heddle_tensor_info& info) {
  const std::int64_t block = dtype_block(DType(info.dtype)).elements;
  return shard.axis + 1 == std::int32_t(info.rank) &&
         std::ranges::any_of(shard.segments, [block](const WeightShard::Segment& s) {
           return s.unit % block != 0 || s.length % block != 0;
         });
}

std::uint64_t CallLoad::rank_bytes(ParallelMode mode, double fraction, bool is_first) const {
  std::uint64_t bytes = 0;
  for (const BlockLoad& block : blocks) {
    if (mode == ParallelMode::sequence ? !block.by_tokens : !block.by_rows)
      bytes += is_first ? block.weight_bytes : 0;
    else if (mode == ParallelMode::sequence)
      bytes += block.weight_bytes;
    else
      bytes += block.whole_bytes +
               std::uint64_t(double(block.weight_bytes - block.whole_bytes) * fraction);
  }
  return bytes;
}

double CallLoad::step_flops() const {
  double flops = 0;
  for (std::uint32_t b = 0; b < blocks.size(); ++b)
    if (blocks[b].phase == main)
      for (std::uint32_t set = 0; set < blocks[b].work.size(); ++set) flops += work(b, set).flops;
  return flops;
}

std::string_view group_of(std::string_view path) {
  const std::size_t dot = path.rfind('.');
  if (dot == std::string_view::npos) return path;
  const std::string_view last = path.substr(dot + 1);
  const bool is_number =
      !last.empty() && std::ranges::all_of(last, [](char c) { return c >= '0' && c <= '9'; });
  return is_number ? path : path.substr(0, dot);
}

CallLoad call_load(const Model& model, const CallSpec& spec, heddle_dtype compute) {
  if (spec.sets.empty())
    throw Error(Code::invalid_argument, "a call of a model has at least one set of inputs");
  return Counter(model, spec, compute).run();
}

CallLoad weight_load(const Model& model, heddle_dtype compute) {
  return Counter(model, {}, compute).weights_only();
}

}  // namespace heddle::engine
