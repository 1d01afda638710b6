#include "sam3_build.h"

#include <cmath>

#include "attention_blocks.h"
#include "sam3_trunk_blocks.h"

namespace heddle::detection {
namespace {

[[noreturn]] void refuse(const Checkpoint& file, const std::string& what) {
  throw Error(HEDDLE_INVALID_ARGUMENT, file.path() + ": " + what);
}

}  // namespace

Sam3Sizes sam3_sizes(const Checkpoint& file, const Value& config) {
  constexpr std::int64_t kHead = 64, kTables = 3;
  const std::string trunk = std::string(kSam3Eyes) + "trunk.";
  Sam3Sizes s{};
  s.width = file.size(trunk + "patch_embed.proj.weight", 0);
  s.patch = file.size(trunk + "patch_embed.proj.weight", 2);
  s.table = file.size(trunk + "pos_embed", 1);
  s.depth = blocks::layer_count(file, trunk + "blocks.");
  s.mlp = file.size(trunk + "blocks.0.mlp.fc1.weight", 0);
  s.heads = config.get<std::int64_t>("num_attention_heads", s.width / kHead);
  const auto side = std::int64_t(std::llround(std::sqrt(double(s.table - 1))));
  if (s.table < 2 || side * side != s.table - 1)
    refuse(file, "tensor '" + trunk + "pos_embed' has " + std::to_string(s.table) +
                     " places, expected one more than a square. The file is damaged.");
  s.window = config.get<std::int64_t>("window_size", side);
  s.image = config.get<std::int64_t>("image_size", kTables * side * s.patch);
  if (s.patch < 1 || s.window < 1 || s.image < 1 || s.image % (s.patch * s.window) != 0)
    refuse(file, "pictures of " + std::to_string(s.image) +
                     " pixels do not divide into windows of " + std::to_string(s.window) +
                     " squares of " + std::to_string(s.patch) +
                     " pixels. Give an image_size that does.");
  if (s.heads < 1 || s.width % s.heads != 0 || s.width / s.heads % 4 != 0)
    refuse(file, "a width of " + std::to_string(s.width) + " does not divide into " +
                     std::to_string(s.heads) +
                     " heads of a multiple of 4 numbers. Give the config.json that belongs to this "
                     "file.");
  const std::string words = std::string(kSam3Words) + "resizer.weight",
                    decoder = "detector.transformer.decoder.";
  s.channels = file.size(words, 0);
  s.text = file.size(words, 1);
  s.queries = file.size(decoder + "query_embed.weight", 0);
  s.detector_heads = file.size(decoder + "boxRPB_embed_x.layers.1.weight", 0);
  if (s.detector_heads < 1 || s.channels % s.detector_heads != 0 || s.channels % 8 != 0)
    refuse(file, "a detector of " + std::to_string(s.channels) + " channels and " +
                     std::to_string(s.detector_heads) +
                     " heads is none that SAM 3 has: channels are a multiple of 8 and of the "
                     "heads. The file is damaged.");
  s.eps = config.get<double>("layer_norm_eps", 1e-5);
  return s;
}

void Sam3Maker::fill(blocks::Slots& slots, const Weight& weight, const Weight& bias,
                     const std::string& module, const Shape& shape) {
  slots.fill(weight, module + ".weight", shape);
  slots.fill(bias, module + ".bias", {shape[0]});
}

Source Sam3Maker::level(const std::string& path, const std::string& convs, int doublings,
                        const Source& hidden) const {
  using B = Sam3Level;
  Block block = graph_.add<B>(path);
  block.link(B::hidden, hidden);
  blocks::Slots slots(file_, block, path);
  const std::string at = kSam3Eyes + convs + "." + std::to_string(2 - doublings) + ".";
  std::int64_t width = d_.width;
  for (int i = 0; i < doublings; ++i, width /= 2) {
    const std::string name = at + "dconv_2x2" + (doublings == 1 ? "" : "_" + std::to_string(i));
    slots.fill(i == 0 ? B::first : B::second, name + ".weight", {width, width / 2, 2, 2});
    slots.fill(i == 0 ? B::first_bias : B::second_bias, name + ".bias", {width / 2});
  }
  fill(slots, B::point, B::point_bias, at + "conv_1x1", {d_.channels, width, 1, 1});
  fill(slots, B::conv, B::conv_bias, at + "conv_3x3", {d_.channels, d_.channels, 3, 3});
  return block[B::out];
}

Source Sam3Maker::attend(const std::string& path, const std::string& at, const std::string& norm,
                         const Source& x, const Seen& seen) const {
  using B = Attend;
  Block block = graph_.add<B>(path);
  block.link(B::x, x)
      .set(B::heads, seen.heads)
      .set(B::eps, d_.eps)
      .set(B::norm_first, seen.norm_first)
      .set(B::keeps, seen.keeps);
  const auto link = [&](const Input<Tensor>& port, const Source& from) {
    if (from.port != nullptr) block.link(port, from);
  };
  link(B::places, seen.places);
  link(B::memory, seen.memory);
  link(B::memory_places, seen.memory_places);
  link(B::bias, seen.bias);
  blocks::Slots slots(file_, block, path);
  const std::int64_t c = d_.channels;
  const std::string joined = at + ".in_proj_weight";
  const bool is_joined = !file_.has(at + ".q_proj.weight");
  const std::int64_t inner = is_joined ? c : file_.size(at + ".q_proj.weight", 0);
  if (inner < 1 || inner % seen.heads != 0)
    refuse(file_, "tensor '" + at + ".q_proj.weight' has " + std::to_string(inner) +
                      " rows, expected a multiple of " + std::to_string(seen.heads) +
                      " heads. The file is damaged.");
  const Weight* const matrices[] = {&B::q, &B::k, &B::v};
  const Weight* const biases[] = {&B::q_bias, &B::k_bias, &B::v_bias};
  for (std::int64_t i = 0; i < 3; ++i) {
    if (is_joined) {
      slots.fill(*matrices[i], {{joined, i * c, (i + 1) * c}}, {c, c});
      slots.fill(*biases[i], {{at + ".in_proj_bias", i * c, (i + 1) * c}}, {c});
    } else {
      fill(slots, *matrices[i], *biases[i], at + "." + "qkv"[i] + "_proj", {inner, c});
    }
  }
  fill(slots, B::proj, B::proj_bias, at + ".out_proj", {c, inner});
  fill(slots, B::norm, B::norm_bias, norm, {c});
  return block[B::out];
}

Source Sam3Maker::feed(const std::string& path, const std::string& up, const std::string& down,
                       const std::string& norm, const Source& x, const Fed& how) const {
  using B = FeedForward;
  Block block = graph_.add<B>(path);
  block.link(B::x, x).set(B::eps, d_.eps).set(B::norm_first, how.norm_first).set(B::gelu, how.gelu);
  blocks::Slots slots(file_, block, path);
  const std::int64_t inner = file_.size(up + ".weight", 0);
  fill(slots, B::up, B::up_bias, up, {inner, d_.channels});
  fill(slots, B::down, B::down_bias, down, {d_.channels, inner});
  fill(slots, B::norm, B::norm_bias, norm, {d_.channels});
  return block[B::out];
}

Source Sam3Maker::head(const std::string& path, const std::string& at, const Source& x,
                       const Tokens& tokens, std::int64_t out) const {
  using B = TokenHead;
  Block block = graph_.add<B>(path);
  block.link(B::x, x)
      .set(B::begin, tokens.begin)
      .set(B::end, tokens.end)
      .set(B::every, tokens.every)
      .set(B::pick, tokens.pick)
      .set(B::eps, d_.eps);
  if (tokens.base.port != nullptr) block.link(B::base, tokens.base);
  blocks::Slots slots(file_, block, path);
  const std::int64_t c = d_.channels;
  if (!tokens.norm.empty()) fill(slots, B::norm, B::norm_bias, tokens.norm, {c});
  fill(slots, B::first, B::first_bias, at + ".layers.0", {c, c});
  fill(slots, B::second, B::second_bias, at + ".layers.1", {c, c});
  fill(slots, B::third, B::third_bias, at + ".layers.2", {out, c});
  return block[B::out];
}

}  // namespace heddle::detection
