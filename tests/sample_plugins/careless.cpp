// Nodes for tests of heddle/testing/node_runner.hpp: one that tells much, and one that takes a
// failed allocation for nothing to worry about, as no node may.
#include <heddle/ops.hpp>

using heddle::Context;
using heddle::Input;
using heddle::Output;
using heddle::Tensor;

struct Double {
  static constexpr heddle::Info info{"careless.double", 1, "Double", "test"};
  static constexpr Input<Tensor> x{"x"};
  static constexpr Output<Tensor> out{"out"};
  static constexpr auto ports = heddle::ports(x, out);
  void execute(Context& ctx) {
    try {
      ctx[out] = heddle::ops::add(ctx, ctx[x], ctx[x]);
    } catch (const heddle::Failed& failed) {
      heddle::services.host->status_free(failed.status);
      ctx[out] = ctx[x];
    }
  }
};

struct Tell {
  static constexpr heddle::Info info{"careless.tell", 1, "Tell", "test"};
  static constexpr Input<std::string> text{"text", {.text = "a \"b\"\n"}};
  static constexpr Input<double> number{"number", {.number = 0.5}};
  static constexpr Input<std::int64_t> whole{"whole", {.number = 3}};
  static constexpr Input<bool> flag{"flag", {.number = 1}};
  static constexpr Input<heddle::Value> latent{"latent", HEDDLE_PORT_OPTIONAL, "", "LATENT"};
  static constexpr Output<std::string> text_out{"text"};
  static constexpr Output<double> number_out{"number"};
  static constexpr Output<std::int64_t> whole_out{"whole"};
  static constexpr Output<bool> flag_out{"flag"};
  static constexpr Output<heddle::Value> latent_out{"latent", 0, "", "LATENT"};
  static constexpr auto ports = heddle::ports(text, number, whole, flag, latent, text_out,
                                              number_out, whole_out, flag_out, latent_out);
  void execute(Context& ctx) {
    if (ctx[whole] < 0) throw heddle::Error(HEDDLE_UNSUPPORTED, "no number below 0 here");
    ctx.progress(0.25);
    ctx.warn("mind the step");
    ctx[text_out] = ctx[text];
    ctx[number_out] = ctx[number];
    ctx[whole_out] = ctx[whole];
    ctx[flag_out] = ctx[flag];
    ctx[latent_out] = ctx.has(latent) ? ctx[latent] : heddle::Record().value();
  }
};

HEDDLE_PLUGIN("org.heddle.tests.careless", "1.0.0", Double, Tell)
