#include "engine/program/tracer.h"

#include <algorithm>
#include <cstring>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/device/kernel_table.h"
#include "engine/device/status.h"
#include "engine/tensor/call.h"
#include "engine/tensor/dtype.h"
#include "engine/tensor/shape.h"
#include "heddle/abi/ops.h"

namespace heddle::engine {

namespace {

// A description of memory: its number in the program.
class TracedStorage final : public Storage {
 public:
  TracedStorage(const void* traced, std::int32_t index, std::uint64_t bytes)
      : traced(traced), index(index), bytes_(bytes) {}
  std::byte* data() const override { return nullptr; }
  std::uint64_t bytes() const override { return bytes_; }
  const char* place() const override { return "block"; }
  const void* const traced;
  const std::int32_t index;

 private:
  std::uint64_t bytes_;
};

class TracedBlock final : public heddle_ctx {
 public:
  explicit TracedBlock(const BlockSpec& spec)
      : spec_(spec), outputs_(spec.node->type->output_count()) {
    const Node& node = *spec.node;
    for (std::uint32_t i = 0; i < spec.inputs.size(); ++i) {
      if (spec.inputs[i])
        inputs_.push_back(make_value(tensor(*spec.inputs[i], ProgramStorage::Kind::input, i)));
      else if (const auto* literal = std::get_if<Value>(&node.inputs[i]))
        inputs_.push_back(*literal);
      else
        inputs_.push_back({});
    }
    for (std::uint32_t i = 0; i < spec.weights.size(); ++i)
      weights_.push_back(spec.weights[i] ? tensor(*spec.weights[i], ProgramStorage::Kind::weight, i)
                                         : Tensor());
    factors_.resize(spec.factors.size());
    for (std::uint32_t i = 0; i < spec.factors.size(); ++i) {
      if (!spec.factors[i]) continue;
      const auto factor = [&](WeightPiece piece) {
        const std::optional<heddle_tensor_info>& info = spec.factors[i]->of(piece);
        return info ? tensor(*info, ProgramStorage::Kind::weight, weight_number(node, {i, piece}))
                    : Tensor();
      };
      factors_[i] = {factor(WeightPiece::down), factor(WeightPiece::up),
                     factor(WeightPiece::scale)};
    }
  }

  BlockProgram finish() {
    for (std::uint32_t i = 0; i < outputs_.size(); ++i) {
      if (!outputs_[i])
        throw Error(Code::internal, cat("the block did not set its output ",
                                        quote(spec_.node->type->output(i).name)));
      program_.outputs.push_back(operand(outputs_[i].get()));
    }
    return std::move(program_);
  }

  const heddle_value* input(std::uint32_t index) override {
    return index < inputs_.size() ? inputs_[index].get() : nullptr;
  }
  void set_output(std::uint32_t index, Value value) override {
    if (index >= outputs_.size())
      throw Error(Code::invalid_argument, cat("there is no output ", index));
    outputs_[index] = get_tensor(*value);
  }
  heddle_tensor* weight(std::uint32_t slot) override {
    return slot < weights_.size() ? weights_[slot].get() : nullptr;
  }
  void want(std::string_view) override { refuse("want() a lazy input"); }
  std::span<const std::pair<std::string, Value>> extras() override { return {}; }
  bool cancelled() const override { return false; }
  void progress(double, std::string_view) override {}
  void wrote(std::string_view, std::string_view) override { refuse("write files"); }
  void warn(std::string_view) override {}
  const char* node() const override { return spec_.node->id.c_str(); }
  const char* device() const override { return spec_.device.c_str(); }
  heddle_dtype compute() const override { return spec_.compute; }
  void* stream() override { return nullptr; }

  Tensor make(const heddle_tensor_info& info) override {
    return tensor(checked_info(info, "tensor"), ProgramStorage::Kind::local, 0);
  }
  Tensor make_host(const heddle_tensor_info&) override { refuse("use host memory"); }
  Tensor upload(const heddle_tensor_info&, const void*) override {
    refuse("upload data: numbers that vary come as inputs");
  }
  void read(heddle_tensor*, void*, std::size_t) override { refuse("read a tensor's elements"); }
  void op(std::uint32_t op, std::span<heddle_tensor* const> in, std::span<heddle_tensor* const> out,
          std::span<const std::byte> attrs) override {
    for (std::size_t i = 0; i < in.size() && !factors_.empty(); ++i)
      if (const std::optional<std::uint32_t> slot = slot_with_factors(in[i])) {
        if (factors_[*slot].down) return add_beside(*slot, op, in, out, attrs);
        const Tensor scaled = scaled_input(*slot, op, in);
        std::vector<heddle_tensor*> given(in.begin(), in.end());
        given[0] = scaled.get();
        return issue(op, given, out, attrs);
      }
    issue(op, in, out, attrs);
  }
  void issue(std::uint32_t op, std::span<heddle_tensor* const> in,
             std::span<heddle_tensor* const> out, std::span<const std::byte> attrs) {
    ProgramOp op_traced{op, {attrs.begin(), attrs.end()}, {}, {}};
    std::vector<heddle_view> views(in.size() + out.size());
    std::vector<const heddle_view*> pointers(views.size(), nullptr);
    const auto add = [&](heddle_tensor* t, std::size_t slot, std::vector<Operand>& to) {
      to.push_back(t == nullptr ? Operand{} : operand(t));
      if (t == nullptr) return;
      views[slot] = {t->info, nullptr};
      pointers[slot] = &views[slot];
    };
    for (std::size_t i = 0; i < in.size(); ++i) add(in[i], i, op_traced.in);
    for (std::size_t i = 0; i < out.size(); ++i) add(out[i], in.size() + i, op_traced.out);
    for (const Operand& o : op_traced.out)
      if (o.storage >= 0 && program_.storages[o.storage].kind != ProgramStorage::Kind::local)
        throw Error(Code::invalid_argument,
                    cat(op_name(op), ": a block must not write to its inputs or weights"));
    const heddle_op_call call{sizeof(heddle_op_call),   op_name(op),
                              std::uint32_t(in.size()), std::uint32_t(out.size()),
                              pointers.data(),          pointers.data() + in.size(),
                              op_traced.attrs.data(),   std::uint32_t(attrs.size())};
    check_op(call);
    const OpCost cost = op_cost(call);
    program_.cost.flops += cost.flops;
    program_.cost.bytes += cost.bytes;
    program_.ops.push_back(std::move(op_traced));
  }
  Value build_model(std::string_view, const Checkpoint&, const heddle_value*) override {
    refuse("build a model");
  }
  std::unique_ptr<SessionHandle> open(const SessionRequest&) override { refuse("open a model"); }
  std::string find_file(std::string_view, std::string_view) override { refuse("look for files"); }
  std::string output_folder(std::string_view) override { refuse("write files"); }
  std::uint64_t identify_file(std::string_view) override { refuse("look for files"); }
  heddle_completion* defer() override { refuse("defer"); }
  NewNodes& new_nodes() override { refuse("ask for new nodes"); }
  Value look_up(std::string_view) override { refuse("look up nodes"); }
  heddle_group group() const override { return spec_.group; }
  heddle_shard shard(std::uint32_t input) override {
    if (input < spec_.shards.size() && spec_.shards[input]) return *spec_.shards[input];
    if (input >= spec_.inputs.size() || !spec_.inputs[input] || spec_.inputs[input]->rank < 2)
      throw Error(Code::invalid_argument, "only tensors of two axes or more hold tokens");
    const std::int64_t tokens = spec_.inputs[input]->shape[spec_.inputs[input]->rank - 2];
    return {sizeof(heddle_shard), 0, tokens, tokens};
  }

 private:
  [[noreturn]] static void refuse(std::string_view what) {
    throw Error(Code::unsupported,
                cat("a block cannot ", what, ": it is recorded once and replayed"));
  }
  Tensor tensor(const heddle_tensor_info& info, ProgramStorage::Kind kind, std::uint32_t index) {
    // A packed weight's strides say nothing; its bytes are known to the planner alone.
    const std::uint64_t bytes = info.layout != 0 ? 0 : span_bytes(info);
    program_.storages.push_back({kind, index, bytes});
    return make_tensor(info, std::make_shared<TracedStorage>(
                                 this, std::int32_t(program_.storages.size() - 1), bytes));
  }
  // Of a weight that something stands beside.
  std::optional<std::uint32_t> slot_with_factors(heddle_tensor* t) const {
    if (t == nullptr) return {};
    const ProgramStorage& storage = program_.storages[std::size_t(operand(t).storage)];
    const bool has_any = storage.kind == ProgramStorage::Kind::weight &&
                         storage.index < factors_.size() &&
                         (factors_[storage.index].down || factors_[storage.index].scale);
    return has_any ? std::optional(storage.index) : std::nullopt;
  }

  // What linear/1 reads besides a weight, times the scales of the weight's columns.
  Tensor scaled_input(std::uint32_t slot, std::uint32_t op, std::span<heddle_tensor* const> in) {
    static const std::uint32_t linear = op_id(HEDDLE_OP_LINEAR), mul = op_id(HEDDLE_OP_MUL);
    const Tensor& scale = factors_[slot].scale;
    heddle_tensor *const x = in[0], *const weight = in.size() > 1 ? in[1] : nullptr;
    const bool is_product = op == linear && x != nullptr && x->info.rank > 0 &&
                            slot_with_factors(weight) == slot && weight->info.rank == 2 &&
                            weight->info.shape[1] == scale->info.shape[0] &&
                            x->info.shape[x->info.rank - 1] == scale->info.shape[0];
    if (!is_product)
      throw Error(Code::unsupported,
                  cat("the columns of the weight ", quote(spec_.node->type->slot(slot).name),
                      " have scales (pre_quant_scale), and it is read by ", op_name(op),
                      " or in columns: they are for whole products only. Use a file without."));
    heddle_tensor_info wide = scale->info;  // of as many axes as x
    wide.rank = x->info.rank;
    std::fill(std::begin(wide.shape), std::end(wide.shape), 0);
    std::fill(std::begin(wide.stride), std::end(wide.stride), 0);
    std::fill_n(std::begin(wide.shape), wide.rank - 1, 1);
    wide.shape[wide.rank - 1] = scale->info.shape[0];
    const Tensor factors = make_tensor(checked_info(wide, "scales"), scale->storage);
    heddle_tensor_info made = x->info;
    std::fill(std::begin(made.stride), std::end(made.stride), 0);
    const Tensor scaled = make(made);
    heddle_tensor* const given[] = {x, factors.get()};
    heddle_tensor* const to[] = {scaled.get()};
    issue(mul, given, to, {});
    return scaled;
  }

  // linear/1 with the patch of its weight: f(x W^T + (x down^T) up^T + bias) + residual.
  void add_beside(std::uint32_t slot, std::uint32_t op, std::span<heddle_tensor* const> in,
                  std::span<heddle_tensor* const> out, std::span<const std::byte> attrs) {
    static const std::uint32_t linear = op_id(HEDDLE_OP_LINEAR);
    const auto given_at = [&](std::size_t i) { return i < in.size() ? in[i] : nullptr; };
    heddle_tensor *const x = given_at(0), *const weight = given_at(1),
                         *const residual = given_at(3);
    const bool is_gemm = op == linear && x != nullptr && x->info.rank > 0 && out.size() == 1 &&
                         out[0] != nullptr && slot_with_factors(weight) == slot &&
                         weight->offset_bytes == 0 &&
                         same_shape(weight->info, *spec_.weights[slot]);
    if (!is_gemm)
      throw Error(Code::unsupported, cat("the weight ", quote(spec_.node->type->slot(slot).name),
                                         " is quantised and read by ", op_name(op),
                                         " or in parts: patches are added to whole products only. "
                                         "Use a file with 16 or 32 bits."));
    heddle_activation_attrs given{};
    std::memcpy(&given, attrs.data(), std::min(attrs.size(), sizeof given));
    const auto bytes_of = [](const heddle_activation_attrs& a) {
      return std::as_bytes(std::span(&a, 1));
    };
    const heddle_activation_attrs none{HEDDLE_ACT_NONE};
    // Of another last size.
    const auto made = [&](const heddle_tensor_info& like, std::int64_t last) {
      heddle_tensor_info info = like;
      info.shape[info.rank - 1] = last;
      std::fill(std::begin(info.stride), std::end(info.stride), 0);
      return make(info);
    };
    const Factors& factors = factors_[slot];
    const Tensor narrow = made(x->info, factors.down->info.shape[0]),
                 patch = made(out[0]->info, weight->info.shape[0]);
    heddle_tensor* const narrowed[] = {narrow.get()};
    heddle_tensor* const patched[] = {patch.get()};
    const bool is_activated = given.kind != HEDDLE_ACT_NONE;
    heddle_tensor* const down[] = {x, factors.down.get(), nullptr, nullptr};
    heddle_tensor* const up[] = {narrow.get(), factors.up.get(), nullptr,
                                 is_activated ? nullptr : residual};
    const Tensor scaled = factors.scale ? scaled_input(slot, op, in) : Tensor();
    heddle_tensor* const whole[] = {scaled ? scaled.get() : x, weight, given_at(2), patch.get()};
    issue(linear, down, narrowed, bytes_of(none));
    issue(linear, up, patched, bytes_of(none));
    issue(linear, whole, out, bytes_of(none));
    if (!is_activated) return;
    static const std::uint32_t activation = op_id(HEDDLE_OP_ACTIVATION), add = op_id(HEDDLE_OP_ADD);
    issue(activation, out, out, bytes_of(given));
    heddle_tensor* const sum[] = {out[0], residual};
    if (residual != nullptr) issue(add, sum, out, {});
  }

  Operand operand(heddle_tensor* t) const {
    const auto* storage = dynamic_cast<const TracedStorage*>(t->storage.get());
    if (storage == nullptr || storage->traced != this)
      throw Error(Code::invalid_argument,
                  "a block used a tensor that is neither its own, an input nor a weight");
    return {storage->index, t->offset_bytes, t->info};
  }

  const BlockSpec& spec_;
  std::vector<Value> inputs_;
  std::vector<Tensor> weights_;
  struct Factors {
    Tensor down, up, scale;
  };
  std::vector<Factors> factors_;  // by slot
  std::vector<Tensor> outputs_;
  BlockProgram program_;
};

}  // namespace

BlockProgram trace_block(const BlockSpec& spec) {
  try {
    TracedBlock traced(spec);
    if (heddle_status* status = spec.node->type->desc().execute(nullptr, &traced);
        status != nullptr)
      throw take_status(status);
    return traced.finish();
  } catch (Error& error) {
    error.at(cat("block ", spec.node->id));
    throw;
  }
}

}  // namespace heddle::engine
