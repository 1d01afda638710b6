#include "sam3.h"

#include <algorithm>
#include <vector>

#include "sam3_build.h"
#include "sam3_trunk_blocks.h"

namespace heddle::detection {
namespace {

constexpr const char *kSam3Layer =
                         "detector.backbone.vision_backbone.trunk.blocks.0.attn.qkv.weight",
                     *kSam3Queries = "detector.transformer.decoder.query_embed.weight";

// The layers that see the whole grid.
bool sees_all(const Value& config, int layer, int depth) {
  constexpr int kParts = 4;
  const Value told = config.field("global_attn_indexes");
  if (!told) return (layer + 1) % std::max(depth / kParts, 1) == 0;
  for (std::uint32_t i = 0; i < told.count(); ++i)
    if (told.item(i).as<std::int64_t>() == layer) return true;
  return false;
}

struct Turned {
  Source cosines, sines;
};

// Builds the image encoder.
class Sam3TrunkBuilder {
 public:
  Sam3TrunkBuilder(const Sam3Maker& maker, const Value& config)
      : maker_(maker), d_(maker.sizes()), config_(config) {}

  Source run(const Source& picture) {
    const std::int64_t grid = d_.grid();
    const Turned near = rotation("trunk.near", d_.window, 1),
                 whole = rotation("trunk.whole", grid, double(d_.window) / double(grid));
    Source hidden = embed(picture);
    for (int i = 0; i < d_.depth; ++i) {
      const bool all = sees_all(config_, i, d_.depth);
      hidden = layer(i, hidden, all ? whole : near, all ? 0 : d_.window);
    }
    return hidden;
  }

 private:
  Turned rotation(const std::string& path, std::int64_t side, double step) const {
    using B = Sam3Rotation;
    Block block = maker_.graph().add<B>(path);
    block.set(B::side, side).set(B::head, d_.width / d_.heads).set(B::step, step);
    return {block[B::cosines], block[B::sines]};
  }

  Source embed(const Source& picture) const {
    using B = Sam3Embed;
    Block block = maker_.graph().add<B>("trunk.embed");
    block.link(B::picture, picture).set(B::eps, d_.eps);
    blocks::Slots slots(maker_.file(), block, "trunk.embed");
    slots.fill(B::patches, at_ + "patch_embed.proj.weight", {d_.width, 3, d_.patch, d_.patch});
    slots.fill(B::places, at_ + "pos_embed", {1, d_.table, d_.width});
    Sam3Maker::fill(slots, B::norm, B::norm_bias, at_ + "ln_pre", {d_.width});
    return block[B::out];
  }

  Source layer(int index, const Source& hidden, const Turned& turned, std::int64_t window) const {
    using B = Sam3Layer;
    const std::string path = "trunk." + std::to_string(index),
                      at = at_ + "blocks." + std::to_string(index) + ".";
    Block block = maker_.graph().add<B>(path);
    block.link(B::hidden, hidden)
        .link(B::cosines, turned.cosines)
        .link(B::sines, turned.sines)
        .set(B::heads, d_.heads)
        .set(B::window, window)
        .set(B::eps, d_.eps);
    blocks::Slots slots(maker_.file(), block, path);
    const std::int64_t width = d_.width;
    Sam3Maker::fill(slots, B::norm1, B::norm1_bias, at + "norm1", {width});
    Sam3Maker::fill(slots, B::qkv, B::qkv_bias, at + "attn.qkv", {3 * width, width});
    Sam3Maker::fill(slots, B::proj, B::proj_bias, at + "attn.proj", {width, width});
    Sam3Maker::fill(slots, B::norm2, B::norm2_bias, at + "norm2", {width});
    Sam3Maker::fill(slots, B::up, B::up_bias, at + "mlp.fc1", {d_.mlp, width});
    Sam3Maker::fill(slots, B::down, B::down_bias, at + "mlp.fc2", {width, d_.mlp});
    return block[B::out];
  }

  const Sam3Maker& maker_;
  const Sam3Sizes& d_;
  const Value& config_;
  const std::string at_ = std::string(kSam3Eyes) + "trunk.";
};

// The configs of the parts that the file has.
Value part_configs(const Checkpoint& file, const Value& config) {
  Record configs;
  std::vector<const char*> parts{"trunk", "detector"};
  if (has_sam3_segmenter(file)) parts.push_back("segmenter");
  if (has_sam3_segmenter(file) && sam3_tracker_sizes(file))
    parts.insert(parts.end(), {"tracker", "memory", "pointer", "mask_logits"});
  for (const char* part : parts) {
    Record own = config.is(HEDDLE_KIND_RECORD) ? Record(config) : Record();
    configs.set(part, own.set("part", value_of(part)).value());
  }
  return configs.value();
}

void add_part(const Sam3Maker& maker, const Value& config, const std::string& part) {
  Blocks& graph = maker.graph();
  if (part == "mask_logits") return add_sam3_mask_logits(maker);
  const bool sees = part.empty() || part == "trunk";
  const Source hidden =
      sees ? Sam3TrunkBuilder(maker, config).run(graph.input("picture", kSam3Input))
           : graph.input("hidden", kSam3Input);
  if (part == "trunk")
    graph.output("hidden", hidden);
  else if (part == "segmenter" || part == "pointer")
    add_sam3_segmenter(maker, hidden, part == "pointer");
  else if (part == "tracker")
    add_sam3_tracker(maker, hidden);
  else if (part == "memory")
    add_sam3_memory(maker, hidden);
  else if (part.empty() || part == "detector")
    add_sam3_detector(maker, hidden);
  else
    throw Error(HEDDLE_INVALID_ARGUMENT,
                maker.file().path() + ": SAM 3 has no part '" + part +
                    "'. Known: trunk, detector, segmenter, tracker, memory, pointer, mask_logits.");
}

}  // namespace

int Sam3::match(const Checkpoint& file, const Value&) {
  return file.has(kSam3Layer) && file.has(kSam3Queries) ? 100 : 0;
}

void Sam3::build(const Checkpoint& file, const Value& config, Blocks& graph) {
  const Sam3Sizes sizes = sam3_sizes(file, config);
  const Sam3Maker maker(file, sizes, graph);
  const std::string part = config.get<std::string>("part", "");
  add_part(maker, config, part);
  graph.setting("family", "sam3");
  graph.setting("image_size", sizes.image);
  graph.setting("grid", sizes.grid());
  graph.setting("width", sizes.width);
  graph.setting("text_width", sizes.text);
  graph.setting("queries", sizes.queries);
  if (const auto tracker = sam3_tracker_sizes(file)) {
    graph.setting("slots", tracker->slots);
    graph.setting("slot_masks", tracker->masks);
    graph.setting("memories", tracker->times);
    graph.setting("channels", sizes.channels);
  }
  if (part.empty()) graph.setting("part_configs", part_configs(file, config));
}

}  // namespace heddle::detection
