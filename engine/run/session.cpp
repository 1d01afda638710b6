#include "engine/run/session.h"

#include <cstring>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/tensor/dtype.h"
#include "engine/tensor/shape.h"
#include "heddle/abi/ops.h"

namespace heddle::core {

namespace {

SessionSpec::Infos infos_of(const heddle_value* record, std::string_view what) {
  SessionSpec::Infos infos;
  if (record == nullptr || kind_of(*record) == HEDDLE_KIND_NONE) return infos;
  const auto* fields = std::get_if<Record>(&record->content);
  if (fields == nullptr) throw Error(Code::invalid_argument, cat("the ", what, " of a model are ", describe(*record), ", not a record"));
  for (const auto& [name, value] : fields->fields) {
    const auto* tensor = std::get_if<Tensor>(&value->content);
    if (tensor == nullptr) throw Error(Code::invalid_argument, cat("the model's input ", quote(name), " is ", describe(*value), ", not a tensor"));
    infos.emplace(name, (*tensor)->info);
  }
  return infos;
}

}  // namespace

std::vector<std::optional<WeightSource>> weight_sources(const Model& model, const Node& node) {
  std::vector<std::optional<WeightSource>> sources(node.weights.size());
  for (std::uint32_t slot = 0; slot < node.weights.size(); ++slot) {
    if (node.weights[slot].empty()) continue;
    WeightSource source;
    source.use = node.type->slot(slot).use;
    for (const WeightPart& part : node.weights[slot]) {
      const TensorView& tensor = model.checkpoint->at(part.tensor);
      const std::int64_t rows = tensor.shape.empty() ? 1 : tensor.shape[0];
      source.parts.push_back({&tensor, part.begin, part.end < 0 ? rows : part.end});
    }
    sources[slot] = std::move(source);
  }
  return sources;
}

Session::Session(SessionPlace place, SessionRequest request, std::function<bool()> cancelled)
    : place_(place), request_(std::move(request)), cancelled_(std::move(cancelled)), model_(get_model(*request_.model)) {
  if (request_.constants.empty()) throw Error(Code::invalid_argument, "a session has at least one set of inputs");
  if (request_.step_count == 0) throw Error(Code::invalid_argument, "a session has at least one step");
}

Session::~Session() {
  // Launches that are still enqueued read them.
  try {
    for (const Tensor& external : externals_)
      if (external) place_.state->keep(external);
  } catch (const Error&) {
    place_.state->settle();
  }
}

const heddle_value* Session::input_value(SessionStorage::Kind kind, std::uint32_t set, const std::string& name,
                                         std::span<const heddle_value* const> sets) const {
  const heddle_value* record = kind == SessionStorage::Kind::constant   ? request_.constants[set].get()
                               : kind == SessionStorage::Kind::schedule ? request_.schedule.get()
                                                                        : sets[set];
  return std::get<Record>(record->content).find(name)->get();
}

void Session::prepare(std::span<const heddle_value* const> sets) {
  DeviceState& state = *place_.state;
  SessionSpec spec;
  spec.step_count = request_.step_count;
  spec.compute = state.device().compute();
  spec.device = state.device().name();
  spec.schedule = infos_of(request_.schedule.get(), "scheduled inputs");
  for (std::size_t i = 0; i < request_.constants.size(); ++i)
    spec.sets.push_back({infos_of(request_.constants[i].get(), "constants"), infos_of(sets[i], "step inputs")});

  const Graph& graph = *model_->graph;
  std::vector<std::vector<std::optional<WeightSource>>> sources;
  for (const Node& node : graph.nodes) {
    sources.push_back(weight_sources(*model_, node));
    auto& forms = spec.weights.emplace_back();
    for (const auto& source : sources.back()) forms.push_back(source ? std::optional(place_.weights->form(*source).info) : std::nullopt);
  }
  plan_ = plan_session(graph, spec, [&](const heddle_op_call& call) {
    const heddle_kernel& kernel = state.kernels().choose(state.device(), call);
    return ChosenKernel{&kernel, kernel.workspace == nullptr ? 0 : kernel.workspace(state.device().raw(), &call)};
  });

  persistent_ = state.allocate(plan_->persistent_bytes);
  scratch_ = state.allocate(plan_->scratch_bytes);
  weights_.resize(plan_->storages.size());
  externals_.resize(plan_->storages.size());
  for (std::size_t s = 0; s < plan_->storages.size(); ++s) {
    if (cancelled_()) throw Error(Code::cancelled, "cancelled while weights were loaded");
    const SessionStorage& storage = plan_->storages[s];
    if (storage.kind == SessionStorage::Kind::weight) {
      weights_[s] = place_.weights->get(*sources[storage.node][storage.slot], model_->checkpoint->identity());
    } else if (storage.kind == SessionStorage::Kind::constant || storage.kind == SessionStorage::Kind::schedule) {
      externals_[s] = state.bring(get_tensor(*input_value(storage.kind, storage.set, storage.input, sets)));
    }
  }
  place_.weights->finish();

  for (const Rate phase : {Rate::constant, Rate::scheduled}) {
    std::vector<Launch> launches;
    for (const PlannedOp& op : plan_->phases[int(phase)]) launches.push_back(make_launch(op));
    run(launches);
  }
  for (const PlannedOp& op : plan_->phases[int(Rate::step)]) step_launches_.push_back(make_launch(op));
  for (const SliceCopy& slice : plan_->slices) {
    const auto row = slice.from.info.stride[0] * std::int64_t(dtype_size(DType(slice.from.info.dtype)));
    slices_.push_back({make_launch(slice.copy), address(slice.from), row});
  }
  for (int i = 0; i < 2; ++i) step_done_.push_back(std::make_unique<Event>(state.device()));
}

std::byte* Session::address(const Operand& operand) const {
  const SessionStorage& storage = plan_->storages[operand.storage];
  switch (storage.kind) {
    case SessionStorage::Kind::persistent:
    case SessionStorage::Kind::step_input: return persistent_->data() + storage.offset + operand.offset_bytes;
    case SessionStorage::Kind::scratch: return scratch_->data() + storage.offset + operand.offset_bytes;
    case SessionStorage::Kind::weight: return weights_[operand.storage]->memory->data() + operand.offset_bytes;
    default: return externals_[operand.storage]->data() + operand.offset_bytes;
  }
}

Session::Launch Session::make_launch(const PlannedOp& op) const {
  Launch launch;
  launch.kernel = op.kernel;
  launch.node = op.node;
  launch.views.resize(op.op.in.size() + op.op.out.size());
  launch.pointers.resize(launch.views.size(), nullptr);
  std::size_t i = 0;
  for (const auto* list : {&op.op.in, &op.op.out})
    for (const Operand& operand : *list) {
      if (operand.storage >= 0) {
        launch.views[i] = {operand.info, address(operand)};
        launch.pointers[i] = &launch.views[i];  // a moved vector keeps its elements where they are
      }
      ++i;
    }
  // The attributes stay in the plan, which outlives the launch.
  launch.call = {sizeof(heddle_op_call),      op_name(op.op.op), std::uint32_t(op.op.in.size()), std::uint32_t(op.op.out.size()), launch.pointers.data(),
                 launch.pointers.data() + op.op.in.size(), op.op.attrs.data(), std::uint32_t(op.op.attrs.size())};
  if (op.workspace >= 0) launch.workspace = address({op.workspace, 0, {}});
  return launch;
}

void Session::launch(const Launch& launch) {
  DeviceState& state = *place_.state;
  heddle_status* status = nullptr;
  state.with_stream([&](Stream& stream) { status = launch.kernel->launch(state.device().raw(), stream.raw(), &launch.call, launch.workspace); });
  if (status != nullptr) {
    try {
      throw_status(status, launch.call.op);
    } catch (Error& error) {
      error.at(cat(model_->graph->nodes[launch.node].id, " on ", state.device().name()));
      throw;
    }
  }
}

void Session::run(const std::vector<Launch>& launches) {
  NodeIndex last = kGraphInputs;
  for (const Launch& l : launches) {
    if (l.node != last && cancelled_()) throw Error(Code::cancelled, "cancelled");
    last = l.node;
    launch(l);
  }
}

std::vector<Value> Session::step(std::uint32_t index, std::span<const heddle_value* const> sets) {
  DeviceState& state = *place_.state;
  if (index >= request_.step_count)
    throw Error(Code::invalid_argument, cat("step ", index, " of a session of ", request_.step_count, " steps"));
  if (sets.size() != request_.constants.size())
    throw Error(Code::invalid_argument, cat("step ", index, ": ", sets.size(), " sets of inputs, the session was opened with ", request_.constants.size()));
  if (cancelled_()) throw Error(Code::cancelled, "cancelled");
  try {
    if (!plan_) prepare(sets);
    // At most one step beyond the running one: wait for the step before the previous one.
    Event& done = *step_done_[index % 2];
    done.wait();
    for (std::size_t s = 0; s < plan_->storages.size(); ++s) {
      const SessionStorage& storage = plan_->storages[s];
      if (storage.kind != SessionStorage::Kind::step_input) continue;
      const auto* fields = std::get_if<Record>(&sets[storage.set]->content);
      const Value* given = fields == nullptr ? nullptr : fields->find(storage.input);
      if (given == nullptr) throw Error(Code::invalid_argument, cat("the model's input ", quote(storage.input), " is missing"));
      const Tensor& tensor = get_tensor(**given);
      heddle_tensor_info place = tensor->info;
      std::fill(std::begin(place.stride), std::end(place.stride), 0);
      if (dense_bytes(place) != storage.bytes)
        throw Error(Code::invalid_argument, cat("the model's input ", quote(storage.input), " is ", describe(tensor->info), ": its shape differs from the first step's"));
      const Tensor slot = make_tensor(checked_info(place, "step input"), persistent_, storage.offset);
      heddle_tensor* const in[] = {tensor.get()};
      heddle_tensor* const out[] = {slot.get()};
      state.op(op_id(HEDDLE_OP_COPY), in, out, {});
    }
    for (Slice& slice : slices_) {
      slice.launch.views[0].data = slice.base + slice.row_bytes * std::int64_t(index);
      launch(slice.launch);
    }
    run(step_launches_);

    std::vector<std::vector<std::pair<std::string, Value>>> fields(sets.size());
    for (const SessionPlan::Output& output : plan_->outputs) {
      // Copied out, because the next step writes the same places.
      heddle_tensor_info info = output.value.info;
      const SessionStorage& storage = plan_->storages[output.value.storage];
      const auto memory = storage.kind == SessionStorage::Kind::scratch ? scratch_ : persistent_;
      const Tensor inside = storage.kind == SessionStorage::Kind::constant || storage.kind == SessionStorage::Kind::schedule
                                ? make_tensor(info, externals_[output.value.storage]->storage, externals_[output.value.storage]->offset_bytes + output.value.offset_bytes)
                                : make_tensor(info, memory, storage.offset + output.value.offset_bytes);
      std::fill(std::begin(info.stride), std::end(info.stride), 0);
      const Tensor out = state.make(info);
      heddle_tensor* const from[] = {inside.get()};
      heddle_tensor* const to[] = {out.get()};
      state.op(op_id(HEDDLE_OP_COPY), from, to, {});
      fields[output.set].emplace_back(output.name, make_value(out));
    }
    state.record(done);
    std::vector<Value> results;
    for (auto& f : fields) results.push_back(make_record(std::move(f)));
    return results;
  } catch (Error& error) {
    if (request_.step_count > 1) error.at(cat("step ", index + 1));
    throw;
  }
}

}  // namespace heddle::core
