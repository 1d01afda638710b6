// A family whose devices divide the tokens of one call among them (--parallel sequence).
#include <heddle/model.hpp>
#include <heddle/ops.hpp>

using heddle::Context;
using heddle::Input;
using heddle::Output;
using heddle::Tensor;

namespace {

constexpr std::int64_t kWidth = 4;

// (B, 1, tokens * 4) -> (B, tokens, 4), with both numbers added.
struct Split {
  static constexpr heddle::Info info{"test.group.split", 1, "Split", "test", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> x{"x"};
  static constexpr Input<Tensor> bias{"bias"};
  static constexpr Input<Tensor> t{"t"};
  static constexpr Output<Tensor> tokens{"tokens"};
  static constexpr auto ports = heddle::ports(x, bias, t, tokens);
  static void execute(Context& ctx) {
    const Tensor flat = ctx[x];
    const Tensor rows = flat.reshape({flat.size(0), flat.size(2) / kWidth, kWidth});
    ctx[tokens] = heddle::ops::add(ctx, heddle::ops::add(ctx, rows, ctx[bias]), ctx[t]);
  }
};

// softmax(x all^T / 10000) all W^T: each token looks at those of all devices.
struct Mix {
  static constexpr heddle::Info info{"test.group.mix", 1, "Mix", "test", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> x{"x", HEDDLE_PORT_SEQUENCE};
  static constexpr heddle::Weight weight{"weight", HEDDLE_USE_LINEAR};
  static constexpr Output<Tensor> y{"y", HEDDLE_PORT_SEQUENCE};
  static constexpr auto ports = heddle::ports(x, weight, y);
  static void execute(Context& ctx) {
    const Tensor own = ctx[x];
    const heddle_shard its = ctx.shard(x);
    const Tensor all = heddle::ops::all_gather(ctx, own, 1, its.begin, its.total);
    const auto one_head = [](const Tensor& rows) {
      return rows.reshape({rows.size(0), rows.size(1), 1, kWidth});
    };
    const Tensor keys = one_head(all);
    const Tensor seen = heddle::ops::attention(ctx, one_head(own), keys, keys, {}, 1e-4);
    ctx[y] = heddle::ops::linear(ctx, seen.reshape(own.shape()), ctx[weight], {});
  }
};

// As x is.
struct Join {
  static constexpr heddle::Info info{"test.group.join", 1, "Join", "test", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> tokens{"tokens"};
  static constexpr Input<Tensor> x{"x", HEDDLE_PORT_SHAPE};
  static constexpr Output<Tensor> y{"y"};
  static constexpr auto ports = heddle::ports(tokens, x, y);
  static void execute(Context& ctx) { ctx[y] = ctx[tokens].reshape(ctx[x].shape()); }
};

struct TokenGroup {
  static constexpr heddle::Family family{"test.token_group", "test", 1, "Tokens of a group."};
  static int match(const heddle::Checkpoint& file, const heddle::Value&) {
    return file.has("mix.0.weight") ? 10 : 0;
  }
  static void build(const heddle::Checkpoint& file, const heddle::Value&, heddle::Blocks& graph) {
    const heddle::Source x = graph.input("x", HEDDLE_INPUT_PER_STEP | HEDDLE_INPUT_BATCH),
                         bias = graph.input("bias", HEDDLE_INPUT_LOOP_INVARIANT),
                         t = graph.input("t", HEDDLE_INPUT_PRECOMPUTED);
    heddle::Source tokens = graph.add<Split>("split")
                                .link(Split::x, x)
                                .link(Split::bias, bias)
                                .link(Split::t, t)[Split::tokens];
    for (int i = 0; i < file.count("mix.", ".weight"); ++i) {
      const std::string at = "mix." + std::to_string(i);
      tokens = graph.add<Mix>(at).link(Mix::x, tokens).weight(Mix::weight, at + ".weight")[Mix::y];
    }
    graph.output("y", graph.add<Join>("join").link(Join::tokens, tokens).link(Join::x, x)[Join::y]);
  }
};

}  // namespace

HEDDLE_PLUGIN("org.heddle.tests.token_group", "1.0.0", TokenGroup, Split, Mix, Join)
