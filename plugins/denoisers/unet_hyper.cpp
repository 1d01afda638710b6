#include "unet_hyper.h"

#include <algorithm>
#include <iterator>

#include <heddle/ops.hpp>

#include "plugins/blocks/slots.h"

namespace heddle::denoisers {
namespace {

constexpr double kUnbounded = 3e38;

// x times a factor, plus another number.
Tensor line(Context& ctx, const Tensor& x, double factor, double more) {
  return ops::scale_clamp(ctx, x, {factor, more, -kUnbounded, kUnbounded});
}
Tensor inverse_of_positive(Context& ctx, const Tensor& x) {
  return ops::rsqrt(ctx, ops::mul(ctx, x, x));
}
// 1 / (1 + e^-x), of minus x where the sign is -1.
Tensor sigmoid(Context& ctx, const Tensor& x, double sign = 1) {
  const Tensor half = ops::activate(ctx, line(ctx, x, sign / 2, 0), HEDDLE_ACT_TANH);
  return line(ctx, half, 0.5, 0.5);
}

// x, or e^x - 1 below 0, which is 2 t / (1 - t) of t = tanh(x / 2).
Tensor elu(Context& ctx, const Tensor& x) {
  const Tensor below = ops::scale_clamp(ctx, x, {0.5, 0, -kUnbounded, 0});
  const Tensor t = ops::activate(ctx, below, HEDDLE_ACT_TANH);
  const Tensor negative = ops::mul(ctx, t, inverse_of_positive(ctx, line(ctx, t, -1, 1)));
  return ops::combine(ctx, {{1, ops::activate(ctx, x, HEDDLE_ACT_RELU)}, {2, negative}});
}

Tensor softsign(Context& ctx, const Tensor& x) {
  const Tensor size =
      ops::combine(ctx, {{1, ops::activate(ctx, x, HEDDLE_ACT_RELU)},
                         {1, ops::activate(ctx, line(ctx, x, -1, 0), HEDDLE_ACT_RELU)}});
  return ops::mul(ctx, x, inverse_of_positive(ctx, line(ctx, size, 1, 1)));
}

// x tanh(ln(1 + e^x)), which is x (1 - q q) / (1 + q q) of q = 1 / (1 + e^x).
Tensor mish(Context& ctx, const Tensor& x) {
  const Tensor q = sigmoid(ctx, x, -1), square = ops::mul(ctx, q, q);
  const Tensor share =
      ops::mul(ctx, line(ctx, square, -1, 1), inverse_of_positive(ctx, line(ctx, square, 1, 1)));
  return ops::mul(ctx, x, share);
}

Tensor applied(Context& ctx, const Tensor& x, std::int64_t function) {
  const std::string name = kHyperFunctions[function];
  if (name == "relu") return ops::activate(ctx, x, HEDDLE_ACT_RELU);
  if (name == "tanh") return ops::activate(ctx, x, HEDDLE_ACT_TANH);
  if (name == "elu") return elu(ctx, x);
  if (name == "sigmoid") return sigmoid(ctx, x);
  if (name == "softsign") return softsign(ctx, x);
  if (name == "mish") return mish(ctx, x);
  // As ComfyUI has it: x clamp(x + 3, 0, 6) / 6.
  if (name == "swish") return ops::mul(ctx, x, ops::scale_clamp(ctx, x, {1.0 / 6, 0.5, 0, 1}));
  if (name == "leakyrelu") {
    const Tensor out = ctx.make_like(x);
    ops::leaky_relu_into(ctx, x, {}, 0.01, out);
    return out;
  }
  return x;
}

std::string prefix_of(const HyperPatch& patch, std::int64_t width, int which) {
  return patch.prefix + std::to_string(width) + "." + std::to_string(which) + ".";
}

// The modules under a prefix, by the numbers in their names.
std::vector<std::string> modules_under(const Checkpoint& file, const std::string& prefix) {
  constexpr std::string_view kWeight = ".weight";
  std::vector<std::pair<std::int64_t, std::string>> found;
  for (std::uint32_t i = 0; i < file.size(); ++i) {
    const std::string name = file.name(i);
    if (!name.starts_with(prefix) || !name.ends_with(kWeight)) continue;
    const std::string module = name.substr(0, name.size() - kWeight.size());
    std::int64_t number = 0;
    for (const char c : module.substr(prefix.size()))
      if (c >= '0' && c <= '9' && number < 100000) number = number * 10 + (c - '0');
    found.emplace_back(number, module);
  }
  std::ranges::sort(found);
  std::vector<std::string> modules;
  for (auto& [number, module] : found) modules.push_back(std::move(module));
  return modules;
}

std::int64_t function_of(const HyperPatch& patch) {
  const auto found = std::ranges::find(kHyperFunctions, patch.function);
  if (found == std::end(kHyperFunctions))
    throw Error(HEDDLE_UNSUPPORTED, patch.file + ": the hypernetwork's function '" +
                                        patch.function +
                                        "' is not known. Use one of linear, relu, leakyrelu, elu, "
                                        "swish, tanh, sigmoid, softsign and mish.");
  return found - std::begin(kHyperFunctions);
}

// Keys or values of one hypernetwork.
Source add_network(const HyperPatch& patch, int which, const Checkpoint& file,
                   const std::string& path, const Source& x, std::int64_t width, Blocks& graph) {
  using L = UnetHyperLayer;
  const std::vector<std::string> modules = modules_under(file, prefix_of(patch, width, which));
  Source made = x;
  std::int64_t reads = width;
  const std::size_t step = patch.has_norms ? 2 : 1;
  if (modules.empty() || modules.size() % step != 0)
    throw Error(HEDDLE_INVALID_ARGUMENT, patch.file + ": the hypernetwork has " +
                                             std::to_string(modules.size()) + " layers under '" +
                                             std::to_string(width) + "." + std::to_string(which) +
                                             "'. The file is damaged.");
  for (std::size_t i = 0; i < modules.size(); i += step) {
    const std::string at = path + "." + std::to_string(i);
    const bool is_last = i + 1 == modules.size();  // never where norms come behind
    const std::int64_t makes = file.size(modules[i] + ".weight", 0);
    Block layer = graph.add<L>(at);
    layer.link(L::x, made)
        .set(L::function, is_last && !patch.ends_in_function ? 0 : function_of(patch));
    blocks::Slots slots(file, layer, at);
    slots.fill(L::weight, modules[i] + ".weight", {makes, reads});
    slots.fill(L::bias, modules[i] + ".bias", {makes});
    if (patch.has_norms) {
      slots.fill(L::norm, modules[i + 1] + ".weight", {makes});
      slots.fill(L::norm_bias, modules[i + 1] + ".bias", {makes});
    }
    made = layer[L::out];
    reads = makes;
  }
  if (reads != width)
    throw Error(HEDDLE_INVALID_ARGUMENT, patch.file + ": the hypernetwork makes " +
                                             std::to_string(reads) + " numbers of " +
                                             std::to_string(width) + ". The file is damaged.");
  Block sum = graph.add<UnetHyperAdd>(path + ".sum");
  sum.link(UnetHyperAdd::x, x)
      .link(UnetHyperAdd::change, made)
      .set(UnetHyperAdd::strength, patch.strength);
  return sum[UnetHyperAdd::out];
}

bool reads_width(const HyperPatch& patch, const Checkpoint& file, std::int64_t width) {
  return !modules_under(file, prefix_of(patch, width, 0)).empty();
}

}  // namespace

void UnetHyperLayer::execute(Context& ctx) {
  const Tensor made = applied(ctx, ops::linear(ctx, ctx[x], ctx[weight], ctx[bias]), ctx[function]);
  constexpr double kEps = 1e-5;
  ctx[out] = ctx[norm] ? ops::layer_norm(ctx, made, ctx[norm], ctx[norm_bias], kEps) : made;
}

void UnetHyperAdd::execute(Context& ctx) {
  const Tensor from = ctx[x], sum = ctx.make(from.shape());
  ops::combine_into(ctx, {{1, from}, {ctx[strength], ctx[change]}}, sum);
  ctx[out] = sum;
}

void UnetSelfNorm::execute(Context& ctx) {
  ctx[out] = ops::layer_norm(ctx, ctx[tokens], ctx[norm], ctx[norm_bias], ctx[eps]);
}

bool has_hypernetwork(const std::vector<HyperPatch>& patches, const Checkpoint& file,
                      std::int64_t width) {
  return std::ranges::any_of(
      patches, [&](const HyperPatch& patch) { return reads_width(patch, file, width); });
}

std::optional<KeysValues> add_hypernetworks(const std::vector<HyperPatch>& patches,
                                            const Checkpoint& file, const std::string& path,
                                            const Source& x, std::int64_t width, Blocks& graph) {
  if (!has_hypernetwork(patches, file, width)) return std::nullopt;
  KeysValues made{x, x};
  for (std::size_t i = 0; i < patches.size(); ++i) {
    if (!reads_width(patches[i], file, width)) continue;
    const std::string at = path + ".hyper." + std::to_string(i);
    made.keys = add_network(patches[i], 0, file, at + ".keys", made.keys, width, graph);
    made.values = add_network(patches[i], 1, file, at + ".values", made.values, width, graph);
  }
  return made;
}

}  // namespace heddle::denoisers
