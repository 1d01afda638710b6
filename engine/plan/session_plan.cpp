#include "engine/plan/session_plan.h"

#include <algorithm>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/plan/layout.h"
#include "engine/plan/recorder.h"
#include "engine/tensor/call.h"
#include "engine/tensor/dtype.h"
#include "engine/tensor/shape.h"
#include "heddle/abi/model.h"
#include "heddle/abi/ops.h"

namespace heddle::core {

namespace {

constexpr std::uint64_t kAlignment = 256;  // what every device's kernels are content with

Rate input_rate(const GraphInput& input) {
  switch (input.flags & HEDDLE_INPUT_RATE_MASK) {
    case HEDDLE_INPUT_CONSTANT: return Rate::constant;
    case HEDDLE_INPUT_SCHEDULED: return Rate::scheduled;
    default: return Rate::step;
  }
}

// The shape a step sees of a value that exists for all steps.
heddle_tensor_info one_row(const heddle_tensor_info& info) {
  heddle_tensor_info row = info;
  row.shape[0] = 1;
  std::fill(std::begin(row.stride), std::end(row.stride), 0);
  return checked_info(row, "scheduled value");
}

class Planner {
 public:
  Planner(const Graph& graph, const SessionSpec& spec, const ChooseKernel& choose)
      : graph_(graph), spec_(spec), choose_(choose), rates_(node_rates(graph)) {
    plan_.node_cost.resize(graph.nodes.size());
    values_.resize(spec.sets.size());
  }

  SessionPlan run() {
    check_inputs();
    for (const Rate phase : {Rate::constant, Rate::scheduled, Rate::step})
      for (const NodeIndex n : graph_.order) {
        if (rates_[n] != phase) continue;
        for (std::uint32_t set = 0; set < spec_.sets.size(); ++set) plan_block(n, set);
      }
    for (const GraphOutput& output : graph_.outputs)
      for (std::uint32_t set = 0; set < spec_.sets.size(); ++set) {
        const auto value = value_of(output.from, set);
        if (!value) throw Error(Code::invalid_argument, cat("model output ", quote(output.name), ": the optional input it shows was not given"));
        plan_.outputs.push_back({set, output.name, *value, rate_of(output.from)});
      }
    lay_out_memory();
    return std::move(plan_);
  }

 private:
  Rate rate_of(const Source& source) const {
    return source.node == kGraphInputs ? input_rate(graph_.inputs[source.port]) : rates_[source.node];
  }
  const SessionSpec::Infos& infos(Rate rate, std::uint32_t set) const {
    return rate == Rate::constant ? spec_.sets[set].constants : rate == Rate::scheduled ? spec_.schedule : spec_.sets[set].steps;
  }

  void check_inputs() const {
    for (std::uint32_t set = 0; set < spec_.sets.size(); ++set) {
      for (const GraphInput& input : graph_.inputs) {
        const auto& given = infos(input_rate(input), set);
        const auto found = given.find(input.name);
        if (found == given.end() && (input.flags & HEDDLE_INPUT_OPTIONAL) == 0)
          throw Error(Code::invalid_argument, cat("the model's input ", quote(input.name), " is missing"));
        if (found != given.end() && input_rate(input) == Rate::scheduled &&
            (found->second.rank == 0 || found->second.shape[0] != std::int64_t(spec_.step_count)))
          throw Error(Code::invalid_argument, cat("the model's scheduled input ", quote(input.name), " is ", describe(found->second),
                                                  ": its first axis has to be the ", spec_.step_count, " steps"));
      }
      for (const Rate rate : {Rate::constant, Rate::scheduled, Rate::step})
        for (const auto& [name, info] : infos(rate, set)) {
          const auto known = std::ranges::find_if(graph_.inputs, [&](const GraphInput& i) { return i.name == name && input_rate(i) == rate; });
          if (known == graph_.inputs.end()) {
            std::vector<std::string_view> names;
            for (const GraphInput& i : graph_.inputs) names.push_back(i.name);
            throw Error(Code::invalid_argument, cat("the model has no ", rate == Rate::constant ? "constant" : rate == Rate::scheduled ? "scheduled" : "step",
                                                    " input ", quote(name), "; it has ", join(names, ", "), did_you_mean(name, names)));
          }
        }
    }
  }

  std::int32_t add_storage(SessionStorage storage) {
    plan_.storages.push_back(std::move(storage));
    uses_.push_back({});
    return std::int32_t(plan_.storages.size() - 1);
  }

  // Where a source's value stands for a set; nothing for an optional input that was not given.
  std::optional<Operand> value_of(const Source& source, std::uint32_t set) {
    const auto key = std::pair(source.node, source.port);
    if (const auto found = values_[set].find(key); found != values_[set].end()) return found->second;
    if (source.node != kGraphInputs) throw Error(Code::internal, cat("block ", graph_.nodes[source.node].id, " was read before it was planned"));
    const GraphInput& input = graph_.inputs[source.port];
    const Rate rate = input_rate(input);
    const auto& given = infos(rate, set);
    const auto found = given.find(input.name);
    if (found == given.end()) return {};
    heddle_tensor_info info = found->second;
    if (rate == Rate::step) {  // copied to a fixed place: row-major there
      std::fill(std::begin(info.stride), std::end(info.stride), 0);
      info = checked_info(info, "step input");
    }
    const auto kind = rate == Rate::constant    ? SessionStorage::Kind::constant
                      : rate == Rate::scheduled ? SessionStorage::Kind::schedule
                                                : SessionStorage::Kind::step_input;
    const Operand value{add_storage({kind, dense_bytes(info), 0, set, 0, 0, input.name}), 0, info};
    values_[set][key] = value;
    return value;
  }

  // As value_of, for a reader that runs at `reader` rate: a step reads one row of a scheduled value.
  std::optional<Operand> read_by(const Source& source, std::uint32_t set, Rate reader) {
    const auto value = value_of(source, set);
    if (!value || reader != Rate::step || rate_of(source) != Rate::scheduled) return value;
    const auto key = std::tuple(source.node, source.port, set);
    if (const auto found = slices_.find(key); found != slices_.end()) return found->second;
    const heddle_tensor_info row = one_row(value->info);
    const Operand to{add_storage({SessionStorage::Kind::scratch, dense_bytes(row), 0, set, 0, 0, {}}), 0, row};
    Operand from = *value;
    from.info.shape[0] = 1;
    SliceCopy slice{from, {}};
    slice.from.info = value->info;
    slice.copy.set = set;
    slice.copy.op = {op_id(HEDDLE_OP_COPY), {}, {from}, {to}};
    choose_kernel(slice.copy, Rate::step, 0);
    use(from.storage, Rate::step, 0);
    use(to.storage, Rate::step, 0);
    plan_.slices.push_back(std::move(slice));
    slices_[key] = to;
    return to;
  }

  void plan_block(NodeIndex n, std::uint32_t set) {
    const Node& node = graph_.nodes[n];
    const Rate phase = rates_[n];
    BlockSpec spec{&node, spec_.compute, spec_.device, {}, spec_.weights[n]};
    std::vector<std::optional<Operand>> inputs;
    for (std::uint32_t i = 0; i < node.inputs.size(); ++i) {
      const auto* link = std::get_if<Source>(&node.inputs[i]);
      // A shape is known in every phase, so the value itself is not waited for and not kept.
      const bool shape_only = (node.type->input(i).flags & HEDDLE_PORT_SHAPE) != 0;
      inputs.push_back(link == nullptr ? std::nullopt : shape_only ? shape_of(*link, set) : read_by(*link, set, phase));
      spec.inputs.push_back(inputs.back() ? std::optional(inputs.back()->info) : std::nullopt);
      if (link != nullptr && !inputs.back() && (node.type->input(i).flags & HEDDLE_PORT_OPTIONAL) == 0)
        throw Error(Code::invalid_argument, cat("block ", node.id, ", input ", quote(node.type->input(i).name), ": the model's optional input it reads was not given"));
    }
    const BlockProgram program = record_block(spec);
    plan_.node_cost[n].flops += program.cost.flops;
    plan_.node_cost[n].bytes += program.cost.bytes;

    std::vector<Operand> base(program.storages.size());  // of each of the program's storages: where it is in the plan
    for (std::size_t s = 0; s < program.storages.size(); ++s) {
      const ProgramStorage& storage = program.storages[s];
      if (storage.kind == ProgramStorage::Kind::input) base[s] = *inputs[storage.index];
      else if (storage.kind == ProgramStorage::Kind::weight) base[s].storage = weight(n, storage.index);
      else base[s].storage = add_storage({SessionStorage::Kind::scratch, storage.bytes, 0, set, 0, 0, {}});
    }
    const auto global = [&](const Operand& local) {
      if (local.storage < 0) return local;
      return Operand{base[local.storage].storage, base[local.storage].offset_bytes + local.offset_bytes, local.info};
    };
    auto& ops = plan_.phases[int(phase)];
    for (const ProgramOp& op : program.ops) {
      PlannedOp planned{n, set, {op.op, op.attrs, {}, {}}, nullptr, -1};
      const auto at = std::uint32_t(ops.size() + 1);  // 0 is for what happens before the first op
      for (const Operand& o : op.in) planned.op.in.push_back(global(o));
      for (const Operand& o : op.out) planned.op.out.push_back(global(o));
      for (const auto* list : {&planned.op.in, &planned.op.out})
        for (const Operand& o : *list)
          if (o.storage >= 0) use(o.storage, phase, at);
      choose_kernel(planned, phase, at);
      ops.push_back(std::move(planned));
    }
    for (std::uint32_t port = 0; port < program.outputs.size(); ++port) values_[set][{n, port}] = global(program.outputs[port]);
  }

  std::optional<Operand> shape_of(const Source& source, std::uint32_t set) {
    if (source.node != kGraphInputs && !values_[set].contains({source.node, source.port}))
      throw Error(Code::unsupported, cat("block ", graph_.nodes[source.node].id, ": its shape is read in an earlier phase than it runs in"));
    const auto value = value_of(source, set);
    if (!value || rate_of(source) != Rate::scheduled) return value;
    Operand row = *value;
    row.info = one_row(value->info);
    return row;
  }

  std::int32_t weight(NodeIndex n, std::uint32_t slot) {
    const auto [at, is_new] = weights_.try_emplace({n, slot}, 0);
    if (is_new) at->second = add_storage({SessionStorage::Kind::weight, 0, 0, 0, n, slot, {}});
    return at->second;
  }

  void choose_kernel(PlannedOp& planned, Rate phase, std::uint32_t at) {
    std::vector<heddle_view> views(planned.op.in.size() + planned.op.out.size());
    std::vector<const heddle_view*> pointers(views.size(), nullptr);
    std::size_t i = 0;
    for (const auto* list : {&planned.op.in, &planned.op.out})
      for (const Operand& o : *list) {
        if (o.storage >= 0) {
          views[i] = {o.info, nullptr};
          pointers[i] = &views[i];
        }
        ++i;
      }
    const heddle_op_call call{sizeof(heddle_op_call), op_name(planned.op.op), std::uint32_t(planned.op.in.size()), std::uint32_t(planned.op.out.size()),
                              pointers.data(), pointers.data() + planned.op.in.size(), planned.op.attrs.data(), std::uint32_t(planned.op.attrs.size())};
    const ChosenKernel chosen = choose_(call);
    planned.kernel = chosen.kernel;
    if (chosen.workspace_bytes == 0) return;
    planned.workspace = add_storage({SessionStorage::Kind::scratch, chosen.workspace_bytes, 0, planned.set, 0, 0, {}});
    use(planned.workspace, phase, at);
  }

  struct Use {
    int first_phase = -1, last_phase = -1;
    std::uint32_t first = 0, last = 0;  // ops of the phase, counted from 1
  };
  void use(std::int32_t storage, Rate phase, std::uint32_t at) {
    Use& u = uses_[storage];
    if (u.first_phase < 0) {
      u.first_phase = int(phase);
      u.first = at;
    }
    u.first = u.first_phase == int(phase) ? std::min(u.first, at) : u.first;
    u.last_phase = std::max(u.last_phase, int(phase));
    u.last = at;
  }

  void lay_out_memory() {
    for (const SessionPlan::Output& output : plan_.outputs) {  // outputs live to the end of their phase, or beyond it
      Use& u = uses_[output.value.storage];
      if (output.rate == Rate::step) u.last = std::uint32_t(plan_.phases[2].size() + 1);
      else u.last_phase = int(Rate::step);
    }
    std::array<std::vector<std::int32_t>, 3> of_phase;
    for (std::size_t s = 0; s < plan_.storages.size(); ++s) {
      SessionStorage& storage = plan_.storages[s];
      const Use& u = uses_[s];
      if (storage.kind == SessionStorage::Kind::scratch && u.first_phase >= 0 && u.first_phase == u.last_phase) {
        of_phase[u.first_phase].push_back(std::int32_t(s));
        continue;
      }
      if (storage.kind == SessionStorage::Kind::scratch) storage.kind = SessionStorage::Kind::persistent;
      if (storage.kind != SessionStorage::Kind::persistent && storage.kind != SessionStorage::Kind::step_input) continue;
      storage.offset = plan_.persistent_bytes;
      plan_.persistent_bytes += (storage.bytes + kAlignment - 1) / kAlignment * kAlignment;
    }
    for (const auto& members : of_phase) {  // the phases run one after another, so they share one arena
      std::vector<Lifetime> lifetimes;
      for (const std::int32_t s : members) lifetimes.push_back({plan_.storages[s].bytes, uses_[s].first, uses_[s].last});
      const Layout layout = lay_out(lifetimes, kAlignment);
      for (std::size_t i = 0; i < members.size(); ++i) plan_.storages[members[i]].offset = layout.offsets[i];
      plan_.scratch_bytes = std::max(plan_.scratch_bytes, layout.bytes);
    }
  }

  const Graph& graph_;
  const SessionSpec& spec_;
  const ChooseKernel& choose_;
  const std::vector<Rate> rates_;
  SessionPlan plan_;
  std::vector<Use> uses_;  // by storage
  std::vector<std::map<std::pair<NodeIndex, std::uint32_t>, Operand>> values_;  // by set
  std::map<std::tuple<NodeIndex, std::uint32_t, std::uint32_t>, Operand> slices_;
  std::map<std::pair<NodeIndex, std::uint32_t>, std::int32_t> weights_;
};

}  // namespace

std::vector<Rate> node_rates(const Graph& graph) {
  std::vector<Rate> rates(graph.nodes.size(), Rate::constant);
  for (const NodeIndex n : graph.order) {
    const Node& node = graph.nodes[n];
    for (std::uint32_t i = 0; i < node.inputs.size(); ++i) {
      const auto* link = std::get_if<Source>(&node.inputs[i]);
      if (link == nullptr || (node.type->input(i).flags & HEDDLE_PORT_SHAPE) != 0) continue;
      rates[n] = std::max(rates[n], link->node == kGraphInputs ? input_rate(graph.inputs[link->port]) : rates[link->node]);
    }
  }
  return rates;
}

SessionPlan plan_session(const Graph& graph, const SessionSpec& spec, const ChooseKernel& choose) {
  return Planner(graph, spec, choose).run();
}

}  // namespace heddle::core
