#include "tests/plan_check/random_sessions.h"

#include <functional>
#include <map>
#include <span>

#include "engine/base/text.h"
#include "engine/device/status.h"
#include "engine/program/session_spec.h"
#include "engine/tensor/call.h"
#include "engine/tensor/shape.h"
#include "heddle/abi/model.h"
#include "heddle/abi/ops.h"

namespace heddle::test {

namespace {

using engine::Source;
using engine::Tensor;

constexpr std::int64_t kWidth = 256, kHeads = 4, kInner = 512;

heddle_tensor* tensor_of(const heddle_value* v) {
  return v == nullptr ? nullptr : engine::get_tensor(*v).get();
}

heddle_tensor_info dense(heddle_tensor_info info) {
  std::fill(std::begin(info.stride), std::end(info.stride), 0);
  return engine::checked_info(info, "tensor");
}

// One recording of a block.
struct Body {
  heddle_ctx& ctx;
  heddle_tensor* in(std::uint32_t i) const { return tensor_of(ctx.input(i)); }
  Tensor make(std::vector<std::int64_t> shape) const {
    return ctx.make(engine::make_info(in(0)->info.dtype, shape));
  }
  void op(const char* name, std::vector<heddle_tensor*> from, heddle_tensor* to) const {
    ctx.op(engine::op_id(name), from, std::span(&to, 1), {});
  }
  template <class Attrs>
  void op(const char* name, std::vector<heddle_tensor*> from, heddle_tensor* to,
          const Attrs& attrs) const {
    ctx.op(engine::op_id(name), from, std::span(&to, 1), std::as_bytes(std::span(&attrs, 1)));
  }
  void give(std::uint32_t output, const Tensor& t) const {
    ctx.set_output(output, engine::make_value(t));
  }
  void give_input(std::uint32_t output) const {
    give(output, engine::make_tensor(in(0)->info, in(0)->storage, in(0)->offset_bytes));
  }
  std::int64_t size(std::uint32_t axis) const { return in(0)->info.shape[axis]; }
};

// Elements [begin, begin + count) along an axis.
Tensor part(heddle_tensor* whole, std::uint32_t axis, std::int64_t begin, std::int64_t count) {
  heddle_tensor_info info = whole->info;
  info.shape[axis] = count;
  return engine::make_tensor(info, whole->storage,
                             whole->offset_bytes + std::uint64_t(begin * info.stride[axis]) * 4);
}

// a + b, as wide as both; or a copy of a.
Tensor sum(const Body& body, heddle_tensor* a, heddle_tensor* b) {
  heddle_tensor_info info = a->info;
  for (std::uint32_t i = 0; b != nullptr && i < info.rank; ++i)
    info.shape[i] = std::max(info.shape[i], b->info.shape[i]);
  const Tensor out = body.ctx.make(dense(info));
  if (b == nullptr)
    body.op(HEDDLE_OP_COPY, {a}, out.get());
  else
    body.op(HEDDLE_OP_ADD, {a, b}, out.get());
  return out;
}

void mix(const Body& body) { body.give(0, sum(body, body.in(0), body.in(1))); }

// The halves of each row change places: views with gaps, two writers of one result.
void swap(const Body& body) {
  const Tensor out = body.ctx.make(dense(body.in(0)->info));
  for (const std::int64_t half : {std::int64_t(0), kWidth / 2})
    body.op(HEDDLE_OP_COPY, {part(body.in(0), 2, kWidth / 2 - half, kWidth / 2).get()},
            part(out.get(), 2, half, kWidth / 2).get());
  body.give(0, out);
}

void in_place(const Body& body) {
  const Tensor out = sum(body, body.in(0), body.in(1));
  const Tensor spare = sum(body, out.get(), nullptr);
  body.op(HEDDLE_OP_ADD, {out.get(), spare.get()}, out.get());
  body.give(0, out);
}

// What it reads, and the double of it.
void pair(const Body& body) {
  body.give_input(0);
  body.give(1, sum(body, body.in(0), body.in(0)));
}

void ones(const Body& body) {
  const Tensor out = body.ctx.make(dense(body.in(0)->info));
  body.op(HEDDLE_OP_FILL, {}, out.get(), heddle_fill_attrs{1});
  body.give(0, out);
}

// Its own tokens beside those of all ranks.
void attend(const Body& body) {
  if (body.ctx.group().count == 1) return mix(body);
  const heddle_shard shard = body.ctx.shard(0);
  const Tensor all = body.make({body.size(0), shard.total, kWidth});
  body.op(HEDDLE_OP_ALL_GATHER, {body.in(0)}, all.get(), heddle_all_gather_attrs{shard.begin, 1});
  body.give(0, sum(body, part(all.get(), 1, shard.begin, body.size(1)).get(), body.in(1)));
}

// Tokens with all heads become all tokens with some heads, and back. With `keeps`, the rank's own
// tokens are put back by itself.
template <bool keeps>
void turn(const Body& body) {
  const heddle_group group = body.ctx.group();
  if (group.count == 1) return mix(body);
  const heddle_shard shard = body.ctx.shard(0);
  const std::int64_t batch = body.size(0), tokens = body.size(1), each = kWidth / kHeads;
  const auto begin = std::int64_t(group.rank) * kHeads / group.count;
  const auto end = std::int64_t(group.rank + 1) * kHeads / group.count;
  const Tensor heads = engine::make_tensor(
      engine::make_info(body.in(0)->info.dtype, std::vector{batch, tokens, kHeads, each}),
      body.in(0)->storage, body.in(0)->offset_bytes);
  const bool is_dense = engine::is_contiguous(body.in(0)->info);
  Tensor from = heads;
  if (!is_dense) {  // a share of what is whole elsewhere has gaps between the items
    const Tensor own = sum(body, body.in(0), nullptr);
    from = engine::make_tensor(heads->info, own->storage, own->offset_bytes);
  }
  const Tensor turned = body.make({batch, shard.total, end - begin, each});
  body.op(HEDDLE_OP_ALL_TO_ALL, {from.get()}, turned.get(),
          heddle_all_to_all_attrs{begin, end, shard.begin, 2, 1});
  const Tensor back = body.make({batch, tokens, kHeads, each});
  body.op(HEDDLE_OP_ALL_TO_ALL, {turned.get()}, back.get(),
          heddle_all_to_all_attrs{shard.begin, shard.end, begin, 1, 2, keeps});
  if (keeps)
    body.op(HEDDLE_OP_COPY, {part(turned.get(), 1, shard.begin, tokens).get()},
            part(back.get(), 2, begin, end - begin).get());
  const Tensor rows = engine::make_tensor(
      engine::make_info(back->info.dtype, std::vector{batch, tokens, kWidth}), back->storage, 0);
  body.give(0, sum(body, rows.get(), body.in(1)));
}

// Two products; where the matrices are divided, each rank has a part of the sum.
void matrix(const Body& body) {
  heddle_tensor *const up = body.ctx.weight(0), *const down = body.ctx.weight(1);
  const Tensor inner = body.make({body.size(0), body.size(1), up->info.shape[0]});
  body.op(HEDDLE_OP_LINEAR, {body.in(0), up}, inner.get(), heddle_activation_attrs{});
  const Tensor out = body.make({body.size(0), body.size(1), kWidth});
  body.op(HEDDLE_OP_LINEAR, {inner.get(), down}, out.get(), heddle_activation_attrs{});
  const heddle_group group = body.ctx.group();
  if (group.kind != HEDDLE_GROUP_ROWS || group.count == 1) return body.give(0, out);
  const Tensor all = body.make({body.size(0), body.size(1), kWidth});
  body.op(HEDDLE_OP_ALL_REDUCE, {out.get()}, all.get());
  body.give(0, all);
}

template <void (*body)(const Body&)>
heddle_status* execute(void*, heddle_ctx* ctx) {
  return engine::to_status([&] { body({*ctx}); });
}

constexpr std::uint32_t kOptional = HEDDLE_PORT_OPTIONAL, kTokens = HEDDLE_PORT_SEQUENCE;
const heddle_port kA{sizeof(heddle_port), 0, "a", "TENSOR", "", nullptr},
    kB{sizeof(heddle_port), kOptional, "b", "TENSOR", "", nullptr},
    kShape{sizeof(heddle_port), HEDDLE_PORT_SHAPE, "shape", "TENSOR", "", nullptr},
    kTokensA{sizeof(heddle_port), kTokens, "a", "TENSOR", "", nullptr},
    kTokensB{sizeof(heddle_port), kTokens | kOptional, "b", "TENSOR", "", nullptr},
    kOut{sizeof(heddle_port), 0, "out", "TENSOR", "", nullptr},
    kTwice{sizeof(heddle_port), 0, "twice", "TENSOR", "", nullptr},
    kTokensOut{sizeof(heddle_port), kTokens, "out", "TENSOR", "", nullptr};
const heddle_port* const kPlain[] = {&kA, &kB};
const heddle_port* const kByShape[] = {&kShape, &kB};
const heddle_port* const kByTokens[] = {&kTokensA, &kTokensB};
const heddle_port* const kOuts[] = {&kOut, &kTwice};
const heddle_port* const kTokensOuts[] = {&kTokensOut};
const heddle_slot kUp{sizeof(heddle_slot), 0, "up", HEDDLE_USE_LINEAR},
    kDown{sizeof(heddle_slot), 0, "down", HEDDLE_USE_LINEAR};
const heddle_slot* const kSlots[] = {&kUp, &kDown};

heddle_node_desc desc_of(const char* type, heddle_status* (*run)(void*, heddle_ctx*),
                         const heddle_port* const* inputs, std::uint32_t outputs = 1,
                         std::uint32_t weights = 0) {
  return {.size = sizeof(heddle_node_desc),
          .version = 1,
          .type = type,
          .title = type,
          .category = "test",
          .doc = "",
          .flags = HEDDLE_NODE_BLOCK,
          .input_count = 2,
          .output_count = outputs,
          .weight_count = weights,
          .inputs = inputs,
          .outputs = inputs == kByTokens ? kTokensOuts : kOuts,
          .weights = kSlots,
          .execute = run};
}

}  // namespace

engine::NodeTypeRef session_block(const std::string& name) {
  static const heddle_node_desc descs[] = {
      desc_of("mix", execute<mix>, kPlain),
      desc_of("swap", execute<swap>, kPlain),
      desc_of("in place", execute<in_place>, kByTokens),
      desc_of("pair", execute<pair>, kPlain, 2),
      desc_of("ones", execute<ones>, kByShape),
      desc_of("attend", execute<attend>, kByTokens),
      desc_of("turn", execute<turn<false>>, kByTokens),
      desc_of("turn the others", execute<turn<true>>, kByTokens),
      desc_of("matrix", execute<matrix>, kPlain, 1, 2),
  };
  for (const heddle_node_desc& desc : descs)
    if (name == desc.type) return std::make_shared<engine::NodeType>(&desc, "test", nullptr);
  throw std::out_of_range(name);
}

engine::ChosenKernel any_kernel(std::uint32_t device_slot, const heddle_op_call& call) {
  static const heddle_kernel kernel{
      sizeof(heddle_kernel), "any", "test", "any", nullptr, nullptr, nullptr};
  const bool wants = device_slot % 2 == 0 && call.in_count == 2;
  return {&kernel, wants ? std::uint64_t(call.in[0]->info.shape[1]) * 1000 : 0};
}

namespace {

// Draws one question.
class Maker {
 public:
  Maker(std::mt19937& random, engine::ParallelMode mode) : random_(random), mode_(mode) {}

  SessionQuestion run() {
    engine::Graph& graph = made_.graph;
    const std::int64_t items = has(engine::ParallelMode::data) ? 2 + below(4) : 1 + below(2);
    const std::int64_t tokens = has(engine::ParallelMode::sequence) ? 3 + below(7) : 1 + below(4);
    const std::int64_t constants = below(2) == 0 ? 1 : items;
    const bool is_batch = constants > 1 || below(2) == 0;
    graph.inputs = {
        {"x", HEDDLE_INPUT_PER_STEP | HEDDLE_INPUT_BATCH},
        {"c", HEDDLE_INPUT_LOOP_INVARIANT | (is_batch ? std::uint32_t(HEDDLE_INPUT_BATCH) : 0u)},
        {"t", HEDDLE_INPUT_PRECOMPUTED}};
    made_.spec.step_count = 1 + below(4);
    const std::uint32_t sets = has(engine::ParallelMode::cfg) ? 2 + below(2) : 1 + below(2);
    for (std::uint32_t s = 0; s < sets; ++s)
      made_.spec.sets.push_back({{{"c", info(constants, 1)}}, {{"x", info(items, tokens)}}});
    made_.spec.schedule = {{"t", info(made_.spec.step_count, 1)}};
    // By how often it runs; what runs once for all steps has no items, and reads none.
    constants_ = {{engine::kGraphInputs, 1}};
    precomputed_ = {{engine::kGraphInputs, 2}};
    steps_ = {{engine::kGraphInputs, 0}};
    constants_have_items_ = constants > 1;
    for (std::uint32_t n = 0, count = 1 + below(12); n < count; ++n) add_block();
    const std::uint32_t outputs = 1 + below(2);
    for (std::uint32_t o = 0; o < outputs; ++o)
      graph.outputs.push_back(
          {o == 0 ? "y" : "z", o == 0 ? steps_.back() : steps_[below(steps_.size())]});
    device_slot();
    made_.spec.weight = [fractions = made_.spec.placement.rank_fractions](
                            std::uint32_t, engine::NodeIndex, std::uint32_t slot,
                            std::uint32_t rank) {
      return std::optional(
          weight_info(slot, rank == engine::kWholeWeight
                                ? kInner
                                : engine::shard_sizes(kInner / 64, fractions)[rank] * 64));
    };
    return std::move(made_);
  }

 private:
  std::uint32_t below(std::size_t n) { return std::uint32_t(random_() % n); }
  bool has(engine::ParallelMode mode) const { return engine::has(mode_, mode); }
  static heddle_tensor_info info(std::int64_t items, std::int64_t tokens) {
    return engine::make_info(HEDDLE_F32, std::vector{items, tokens, kWidth});
  }
  static heddle_tensor_info weight_info(std::uint32_t slot, std::int64_t inner) {
    return engine::make_info(HEDDLE_F32,
                             slot == 0 ? std::vector{inner, kWidth} : std::vector{kWidth, inner});
  }
  const Source& any(const std::vector<Source>& of) {
    return of[below(2) == 0 ? of.size() - 1 : below(of.size())];
  }

  void add_block() {
    static const char* const kNames[] = {"mix",    "mix",    "swap",           "in place",
                                         "pair",   "ones",   "attend",         "turn",
                                         "matrix", "matrix", "turn the others"};
    const std::uint32_t kind = below(10);  // of what it reads
    const std::string name = kNames[below(std::size(kNames))];
    std::vector<Source>* made = kind == 0 ? &constants_ : kind < 3 ? &precomputed_ : &steps_;
    engine::Node node;
    node.inputs.resize(2);
    if (name == "ones") {
      made = &constants_;
      constants_have_items_ = true;  // as many as x has
      node.inputs[0] = steps_.front();
    } else {
      node.inputs[0] = any(*made);
      const bool two = name != "swap" && name != "pair" && name != "matrix" && below(3) > 0;
      const std::uint32_t other = below(4);
      if (two && made == &steps_)
        node.inputs[1] = any(other == 0 ? constants_ : other == 1 ? precomputed_ : steps_);
      else if (two && made == &precomputed_)
        node.inputs[1] = other == 0 && !constants_have_items_ ? any(constants_) : any(precomputed_);
      else if (two)
        node.inputs[1] = any(constants_);
    }
    node.type = session_block(name);
    node.id = engine::cat(name, ".", made_.graph.nodes.size());
    if (name == "matrix") {
      node.weights = {{{"up", 0, -1}}, {{"down", 0, -1}}};
      if (below(4) > 0) node.shards = {{0, {{kInner, 64}}}, {1, {{kInner, 64}}}};
    }
    const auto n = engine::NodeIndex(made_.graph.nodes.size());
    for (std::uint32_t o = 0; o < node.type->output_count(); ++o) made->push_back({n, o});
    made_.graph.nodes.push_back(std::move(node));
    made_.graph.order.push_back(n);
  }

  void device_slot() {
    engine::CallPlacement& placement = made_.spec.placement;
    const std::size_t sets = made_.spec.sets.size();
    const std::uint32_t ranks = has(engine::kOverRanks) ? 1 + below(4) : 1,
                        most = ranks > 2 ? 2 : 3;
    const std::uint32_t set_shares =
        has(engine::ParallelMode::cfg) ? 1 + below(std::min<std::size_t>(sets, most)) : 1;
    const std::uint32_t item_shares = has(engine::ParallelMode::data) ? 1 + below(most) : 1;
    const std::uint32_t count = ranks * set_shares * item_shares;
    placement.parallel = mode_;
    for (std::uint32_t d = 0; d < count; ++d) placement.devices.push_back(d);
    if (has(engine::ParallelMode::layers)) {
      const bool ranges = below(2) == 0;  // else back and forth
      for (std::size_t n = 0; n < made_.graph.nodes.size(); ++n)
        placement.of_block.push_back(ranges ? std::uint32_t(n * ranks / made_.graph.nodes.size())
                                            : below(ranks));
    }
    if (has(engine::ParallelMode::cfg)) {
      for (std::size_t s = 0; s < sets; ++s) placement.of_set.push_back(below(set_shares));
      placement.of_set[below(sets)] = set_shares - 1;  // each share may be empty but the last
    }
    if (has(engine::ParallelMode::data)) placement.item_fractions = fractions_of(item_shares);
    if (has(engine::kRanksExchange)) placement.rank_fractions = fractions_of(ranks);
    const std::uint32_t device_slots = count + (below(3) == 0 ? 1 : 0);
    const bool shared = below(3) == 0 && (count == ranks || !has(engine::kRanksExchange));
    made_.spec.device_slots.clear();
    for (std::uint32_t p = 0; p < device_slots; ++p)
      made_.spec.device_slots.push_back(
          {engine::cat("fake:", p), HEDDLE_F32, shared && below(2) == 0 ? 0 : p + 1});
    made_.spec.home = device_slots > count ? count : below(count);
    if (below(2) == 0)
      engine::mark_peers(made_.spec, count, [](std::uint32_t, std::uint32_t) { return true; });
  }

  std::vector<double> fractions_of(std::uint32_t count) {
    std::vector<double> fractions;
    double all = 0;
    while (fractions.size() < count) all += fractions.emplace_back(1.0 + below(3));
    for (double& fraction : fractions) fraction /= all;
    return fractions;
  }

  std::mt19937& random_;
  const engine::ParallelMode mode_;
  SessionQuestion made_;
  std::vector<Source> constants_, precomputed_, steps_;
  bool constants_have_items_ = false;
};

}  // namespace

SessionQuestion random_session(std::mt19937& random, engine::ParallelMode mode) {
  return Maker(random, mode).run();
}

std::string SessionQuestion::describe() const {
  std::string text = engine::cat(engine::parallel_name(spec.placement.parallel), ", home ",
                                 spec.home, ", ", spec.sets.size(), " sets, x ",
                                 engine::describe(spec.sets.front().steps.at("x")), ", places");
  for (const auto& device_slot : spec.device_slots)
    text += engine::cat(" ", device_slot.memory, device_slot.peers != 0 ? "p" : "");
  text += "\n";
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    text += engine::cat("  ", n, " ", graph.nodes[n].id);
    for (const engine::Binding& binding : graph.nodes[n].inputs)
      if (const auto* link = std::get_if<Source>(&binding))
        text += link->node == engine::kGraphInputs ? engine::cat(" ", graph.inputs[link->port].name)
                                                   : engine::cat(" ", link->node, ".", link->port);
    if (!spec.placement.of_block.empty()) text += engine::cat(" on ", spec.placement.of_block[n]);
    text += "\n";
  }
  return text;
}

}  // namespace heddle::test
