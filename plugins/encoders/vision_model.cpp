#include "vision_model.h"

#include <algorithm>

#include "plugins/blocks/slots.h"

namespace heddle::encoders {
namespace {

constexpr std::string_view kPatches = "patch_embed.proj.weight";
constexpr double kVisionEps = 1e-6;
constexpr std::int64_t kFrames = 2, kColours = 3, kMerge = 2, kHeads = 16, kWindow = 112;
constexpr int kLayersOfARound = 8;  // the last of these sees all

// The prefix of the tower's tensors ("visual."); nothing when the file has none.
std::optional<std::string> vision_prefix(const Checkpoint& file) {
  const auto prefix = blocks::prefix_before(file, kPatches);
  if (!prefix) return std::nullopt;
  for (const char* name :
       {"blocks.0.attn.qkv.weight", "blocks.0.mlp.gate_proj.weight", "merger.ln_q.weight"})
    if (!file.has(*prefix + name)) return std::nullopt;
  return prefix;
}

struct VisionSizes {
  std::int64_t width, inner, out, patch, heads, side;
  int layers;
};

VisionSizes read_vision_sizes(const Checkpoint& file, const std::string& prefix,
                              const Value& config) {
  const std::string patches = prefix + std::string(kPatches);
  VisionSizes s{};
  s.width = file.size(patches, 0);
  s.patch = file.size(patches, file.info(patches).rank - 1);
  s.inner = file.size(prefix + "blocks.0.mlp.gate_proj.weight", 0);
  const std::string last = prefix + "merger.mlp.2.weight";
  s.out = file.has(last) ? file.size(last, 0) : 0;
  s.layers = blocks::layer_count(file, prefix + "blocks.");
  s.heads = config.get<std::int64_t>("num_heads", kHeads);
  const auto window = config.get<std::int64_t>("window_size", kWindow);
  s.side = s.patch > 0 ? window / (s.patch * kMerge) : 0;
  // A head's pairs are halved between rows and columns.
  if (s.heads <= 0 || s.width % (4 * s.heads) != 0 || s.side < 1)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                file.path() + ": a vision tower of width " + std::to_string(s.width) + " with " +
                    std::to_string(s.heads) + " heads, patches of " + std::to_string(s.patch) +
                    " and windows of " + std::to_string(window) +
                    " pixels: the width has to be a multiple of four times the heads, a window one "
                    "of two patches at least. Give the config.json that belongs to this file.");
  return s;
}

// Builds the graph of one file.
class VisionBuilder {
 public:
  VisionBuilder(const Checkpoint& file, std::string prefix, const Value& config, Blocks& graph)
      : file_(file),
        prefix_(std::move(prefix)),
        config_(config),
        s_(read_vision_sizes(file, prefix_, config)),
        graph_(graph) {}

  void run() {
    const heddle::Source picture = graph_.input("picture", HEDDLE_INPUT_LOOP_INVARIANT);
    heddle::Source hidden = embed(picture);
    const auto [cos, sin] = add_rope(picture);
    for (int i = 0; i < s_.layers; ++i) hidden = add_layer(i, hidden, cos, sin, picture);
    graph_.output("tokens", merge(hidden, picture));
    graph_.setting("family", "qwen2.5_vision");
    graph_.setting("width", s_.out);
    graph_.setting("unit", s_.patch * kMerge);
  }

 private:
  std::string name(const std::string& tail) const { return prefix_ + tail; }

  // Of a block that has to know the picture's patches.
  template <class B>
  Block add(const std::string& path, const heddle::Source& picture) {
    Block block = graph_.add<B>(path);
    block.link(B::picture, picture)
        .set(B::patch, s_.patch)
        .set(B::merge, kMerge)
        .set(B::side, s_.side);
    return block;
  }

  heddle::Source embed(const heddle::Source& picture) {
    using B = VisionEmbed;
    Block block = add<B>("embed", picture);
    blocks::Slots slots(file_, block, "embed");
    const std::string patches = name(std::string(kPatches));
    const Shape shape{s_.width, kColours, kFrames, s_.patch, s_.patch};
    for (std::int64_t frame = 1; frame <= kFrames; ++frame) {
      Part part{patches};
      part.frame = frame;
      slots.fill(frame == 1 ? B::first : B::second, std::vector<Part>{part}, shape);
    }
    return block[B::out];
  }

  std::pair<heddle::Source, heddle::Source> add_rope(const heddle::Source& picture) {
    using B = VisionRope;
    Block block = add<B>("rope", picture);
    block.set(B::head, s_.width / s_.heads);
    return {block[B::cos], block[B::sin]};
  }

  bool sees_all(int layer) const {
    const Value listed = config_.field("fullatt_block_indexes");
    if (!listed.is(HEDDLE_KIND_LIST)) return layer % kLayersOfARound == kLayersOfARound - 1;
    for (std::uint32_t i = 0; i < listed.count(); ++i)
      if (listed.item(i).as<std::int64_t>() == layer) return true;
    return false;
  }

  heddle::Source add_layer(int i, const heddle::Source& hidden, const heddle::Source& cos,
                           const heddle::Source& sin, const heddle::Source& picture) {
    using B = VisionLayer;
    const std::string path = "layer." + std::to_string(i),
                      at = name("blocks." + std::to_string(i) + ".");
    Block block = add<B>(path, picture);
    block.link(B::hidden, hidden).link(B::cos, cos).link(B::sin, sin);
    block.set(B::heads, s_.heads).set(B::sees_all, sees_all(i)).set(B::eps, kVisionEps);
    blocks::Slots slots(file_, block, path);
    const std::int64_t d = s_.width, f = s_.inner;
    slots.fill(B::norm1, at + "norm1.weight", {d});
    slots.fill(B::qkv, at + "attn.qkv.weight", {3 * d, d});
    slots.fill(B::qkv_bias, at + "attn.qkv.bias", {3 * d});
    slots.fill(B::proj, at + "attn.proj.weight", {d, d});
    slots.fill(B::proj_bias, at + "attn.proj.bias", {d});
    slots.fill(B::norm2, at + "norm2.weight", {d});
    const std::string gate = at + "mlp.gate_proj.", up = at + "mlp.up_proj.";
    slots.fill(B::up, {{gate + "weight"}, {up + "weight"}}, {2 * f, d});
    slots.fill(B::up_bias, {{gate + "bias"}, {up + "bias"}}, {2 * f});
    slots.fill(B::down, at + "mlp.down_proj.weight", {d, f});
    slots.fill(B::down_bias, at + "mlp.down_proj.bias", {d});
    return block[B::out];
  }

  heddle::Source merge(const heddle::Source& hidden, const heddle::Source& picture) {
    using B = VisionMerge;
    Block block = add<B>("merge", picture);
    block.link(B::hidden, hidden).set(B::eps, kVisionEps);
    blocks::Slots slots(file_, block, "merge");
    const std::int64_t all = s_.width * kMerge * kMerge;
    slots.fill(B::norm, name("merger.ln_q.weight"), {s_.width});
    slots.fill(B::up, name("merger.mlp.0.weight"), {all, all});
    slots.fill(B::up_bias, name("merger.mlp.0.bias"), {all});
    slots.fill(B::down, name("merger.mlp.2.weight"), {s_.out, all});
    slots.fill(B::down_bias, name("merger.mlp.2.bias"), {s_.out});
    return block[B::out];
  }

  const Checkpoint& file_;
  const std::string prefix_;
  const Value& config_;
  const VisionSizes s_;
  Blocks& graph_;
};

}  // namespace

int VisionModel::match(const Checkpoint& file, const Value&) {
  return vision_prefix(file) ? 100 : 0;
}

void VisionModel::build(const Checkpoint& file, const Value& config, Blocks& graph) {
  const std::optional<std::string> prefix = vision_prefix(file);
  if (!prefix)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                file.path() + ": there is no vision tower of Qwen2.5-VL in this file");
  const Value part = config.field("vision_config"),
              &vision = part.is(HEDDLE_KIND_RECORD) ? part : config;
  VisionBuilder(file, *prefix, vision, graph).run();
}

}  // namespace heddle::encoders
