#include "deep_vision_model.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "plugins/blocks/slots.h"

namespace heddle::encoders {
namespace {

constexpr std::string_view kTowerPatches = "patch_embed.proj.weight";
constexpr double kTowerEps = 1e-6;
constexpr std::int64_t kTowerFrames = 2, kTowerColours = 3, kTowerMerge = 2, kTowerHeads = 16;
// Patches stand unit after unit: windows of one unit.
constexpr std::int64_t kUnitSide = 1;
// The smallest one has heads as wide as the others, and fewer of them.
constexpr std::int64_t kSmallTowerWidth = 768, kSmallTowerHeads = 12;
// Of the towers with 27 layers; those with 24 have theirs at even distances.
constexpr int kLargeDepth = 27, kLargeStep = 8;

// The prefix of the tower's tensors ("visual."); nothing when the file has none.
std::optional<std::string> tower_prefix(const Checkpoint& file) {
  const auto prefix = blocks::prefix_before(file, kTowerPatches);
  if (!prefix) return std::nullopt;
  for (const char* name : {"blocks.0.attn.qkv.weight", "blocks.0.mlp.linear_fc1.weight",
                           "merger.norm.weight", "pos_embed.weight"})
    if (!file.has(*prefix + name)) return std::nullopt;
  return prefix;
}

struct TowerSizes {
  std::int64_t width, inner, out, patch, heads, places;
  int layers;
  std::vector<int> deep;  // layers behind which there is a merger
};

// A merger for each; the numbers of its layers, from 0.
std::vector<int> deep_layers(const Checkpoint& file, const Value& config, int layers, int count) {
  const Value listed = config.field("deepstack_visual_indexes");
  std::vector<int> found;
  for (int i = 0; i < count; ++i) {
    const int published = layers == kLargeDepth ? (i + 1) * kLargeStep
                                                : std::max(0, (i + 1) * layers / (count + 1) - 1);
    const bool is_listed = listed.is(HEDDLE_KIND_LIST) && listed.count() == std::uint32_t(count);
    found.push_back(is_listed ? int(listed.item(std::uint32_t(i)).as<std::int64_t>()) : published);
    if (found.back() < 0 || found.back() >= layers)
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  file.path() + ": a merger of the vision tower stands behind layer " +
                      std::to_string(found.back()) + " of " + std::to_string(layers) +
                      ". Give the config.json that belongs to this file.");
  }
  return found;
}

TowerSizes read_tower_sizes(const Checkpoint& file, const std::string& prefix,
                            const Value& config) {
  const std::string patches = prefix + std::string(kTowerPatches);
  TowerSizes s{};
  s.width = file.size(patches, 0);
  s.patch = file.size(patches, file.info(patches).rank - 1);
  s.inner = file.size(prefix + "blocks.0.mlp.linear_fc1.weight", 0);
  s.places = file.size(prefix + "pos_embed.weight", 0);
  const std::string last = prefix + "merger.linear_fc2.weight";
  s.out = file.has(last) ? file.size(last, 0) : 0;
  s.layers = blocks::layer_count(file, prefix + "blocks.");
  s.heads = config.get<std::int64_t>("num_heads",
                                     s.width == kSmallTowerWidth ? kSmallTowerHeads : kTowerHeads);
  s.deep = deep_layers(file, config, s.layers,
                       blocks::layer_count(file, prefix + "deepstack_merger_list."));
  const auto side = std::int64_t(std::lround(std::sqrt(double(s.places))));
  // A head's pairs are halved between rows and columns.
  if (s.heads <= 0 || s.width % (4 * s.heads) != 0 || side * side != s.places || s.places == 0)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                file.path() + ": a vision tower of width " + std::to_string(s.width) + " with " +
                    std::to_string(s.heads) + " heads and a table of " + std::to_string(s.places) +
                    " places: the width has to be a multiple of four times the heads, the places "
                    "a square. Give the config.json that belongs to this file.");
  return s;
}

// Builds the graph of one file.
class TowerBuilder {
 public:
  TowerBuilder(const Checkpoint& file, std::string prefix, const Value& config, Blocks& graph)
      : file_(file),
        prefix_(std::move(prefix)),
        s_(read_tower_sizes(file, prefix_, config)),
        graph_(graph) {}

  void run() {
    const heddle::Source picture = graph_.input("picture", HEDDLE_INPUT_LOOP_INVARIANT);
    heddle::Source hidden = embed(picture);
    const auto [cos, sin] = add_rope(picture);
    for (int i = 0; i < s_.layers; ++i) {
      hidden = add_layer(i, hidden, cos, sin);
      for (std::size_t k = 0; k < s_.deep.size(); ++k)
        if (s_.deep[k] == i) {
          const std::string number = std::to_string(k), path = "deep." + number;
          graph_.output(path.c_str(),
                        merge(path, "deepstack_merger_list." + number + ".", true, hidden));
        }
    }
    graph_.output("tokens", merge("merge", "merger.", false, hidden));
    graph_.setting("family", "qwen3_vision");
    graph_.setting("width", s_.out);
    graph_.setting("unit", s_.patch * kTowerMerge);
    graph_.setting("deep", std::int64_t(s_.deep.size()));
    graph_.setting("pixel_mean", 0.5);
    graph_.setting("pixel_deviation", 0.5);
  }

 private:
  std::string name(const std::string& tail) const { return prefix_ + tail; }

  // Of a block that has to know the picture's patches.
  template <class B>
  Block add(const std::string& path, const heddle::Source& picture) {
    Block block = graph_.add<B>(path);
    block.link(B::picture, picture)
        .set(B::patch, s_.patch)
        .set(B::merge, kTowerMerge)
        .set(B::side, kUnitSide);
    return block;
  }

  heddle::Source embed(const heddle::Source& picture) {
    using B = DeepVisionEmbed;
    Block block = add<B>("embed", picture);
    blocks::Slots slots(file_, block, "embed");
    const std::string patches = name(std::string(kTowerPatches));
    const Shape shape{s_.width, kTowerColours, kTowerFrames, s_.patch, s_.patch};
    for (std::int64_t frame = 1; frame <= kTowerFrames; ++frame) {
      Part part{patches};
      part.frame = frame;
      slots.fill(frame == 1 ? B::first : B::second, std::vector<Part>{part}, shape);
    }
    slots.fill(B::bias, name("patch_embed.proj.bias"), {s_.width});
    slots.fill(B::places, name("pos_embed.weight"), {s_.places, s_.width});
    return block[B::out];
  }

  std::pair<heddle::Source, heddle::Source> add_rope(const heddle::Source& picture) {
    using B = VisionRope;
    Block block = add<B>("rope", picture);
    block.set(B::head, s_.width / s_.heads);
    return {block[B::cos], block[B::sin]};
  }

  heddle::Source add_layer(int i, const heddle::Source& hidden, const heddle::Source& cos,
                           const heddle::Source& sin) {
    using B = DeepVisionLayer;
    const std::string path = "layer." + std::to_string(i),
                      at = name("blocks." + std::to_string(i) + ".");
    Block block = graph_.add<B>(path);
    block.link(B::hidden, hidden).link(B::cos, cos).link(B::sin, sin);
    block.set(B::heads, s_.heads).set(B::eps, kTowerEps);
    blocks::Slots slots(file_, block, path);
    const std::int64_t d = s_.width, f = s_.inner;
    const auto fill = [&](const Weight& weight, const Weight& bias, const char* module, Shape out) {
      slots.fill(bias, at + module + ".bias", {out[0]});
      slots.fill(weight, at + module + ".weight", out);
    };
    fill(B::norm1, B::norm1_bias, "norm1", {d});
    fill(B::qkv, B::qkv_bias, "attn.qkv", {3 * d, d});
    fill(B::proj, B::proj_bias, "attn.proj", {d, d});
    fill(B::norm2, B::norm2_bias, "norm2", {d});
    fill(B::up, B::up_bias, "mlp.linear_fc1", {f, d});
    fill(B::down, B::down_bias, "mlp.linear_fc2", {d, f});
    return block[B::out];
  }

  // `module` ends in a dot.
  heddle::Source merge(const std::string& path, const std::string& module, bool norms_units,
                       const heddle::Source& hidden) {
    using B = DeepVisionMerge;
    Block block = graph_.add<B>(path);
    block.link(B::hidden, hidden).set(B::merge, kTowerMerge).set(B::norms_units, norms_units);
    block.set(B::eps, kTowerEps);
    blocks::Slots slots(file_, block, path);
    const std::int64_t all = s_.width * kTowerMerge * kTowerMerge,
                       normed = norms_units ? all : s_.width;
    const std::string at = name(module);
    slots.fill(B::norm, at + "norm.weight", {normed});
    slots.fill(B::norm_bias, at + "norm.bias", {normed});
    slots.fill(B::up, at + "linear_fc1.weight", {all, all});
    slots.fill(B::up_bias, at + "linear_fc1.bias", {all});
    slots.fill(B::down, at + "linear_fc2.weight", {s_.out, all});
    slots.fill(B::down_bias, at + "linear_fc2.bias", {s_.out});
    return block[B::out];
  }

  const Checkpoint& file_;
  const std::string prefix_;
  const TowerSizes s_;
  Blocks& graph_;
};

}  // namespace

int DeepVisionModel::match(const Checkpoint& file, const Value&) {
  return tower_prefix(file) ? 100 : 0;
}

void DeepVisionModel::build(const Checkpoint& file, const Value& config, Blocks& graph) {
  const std::optional<std::string> prefix = tower_prefix(file);
  if (!prefix)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                file.path() + ": there is no vision tower of Qwen3-VL or Qwen3.5 in this file");
  const Value part = config.field("vision_config"),
              &vision = part.is(HEDDLE_KIND_RECORD) ? part : config;
  TowerBuilder(file, *prefix, vision, graph).run();
}

}  // namespace heddle::encoders
