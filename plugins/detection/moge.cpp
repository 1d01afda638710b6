#include "moge.h"

#include <vector>

#include "attention_blocks.h"
#include "moge_build.h"
#include "moge_stack_blocks.h"

namespace heddle::detection {
namespace {

constexpr int kMogeTaps = 4;

// Of MoGe's file: what its modules are called behind, and its version.
struct MogeFile {
  DinoNames dino;
  std::string root;
  int version;
};

std::optional<MogeFile> moge_file(const Checkpoint& file) {
  constexpr std::string_view kBackbone = "backbone.", kEncoder = "encoder.backbone.";
  const std::optional<DinoNames> dino = dino_names(file);
  if (!dino) return std::nullopt;
  const bool is_later = dino->at.ends_with(kEncoder);
  const std::string root =
      dino->at.substr(0, dino->at.size() - (is_later ? kEncoder : kBackbone).size());
  if (is_later && file.has(root + "points_head.input_blocks.0.weight") &&
      file.has(root + "scale_head.0.weight"))
    return MogeFile{*dino, root, file.has(root + "refiner.input_proj.weight") ? 3 : 2};
  if (!is_later && file.has(root + "head.projects.0.weight")) return MogeFile{*dino, root, 1};
  return std::nullopt;
}

// Adds version 1.
class MogeFirst {
 public:
  MogeFirst(const Checkpoint& file, const MogeFile& names, const MogeInputs& inputs, Blocks& graph)
      : file_(file), names_(names), inputs_(inputs), graph_(graph) {}

  void run() const {
    const int depth = names_.dino.depth;
    const std::string at = names_.root + "head.";
    std::vector<int> taps;
    for (int i = depth - kMogeTaps; i < depth; ++i) taps.push_back(i);
    const DinoBuilder dino(file_, names_.dino, inputs_, graph_);
    Source x = dino.cells(dino.run(taps, names_.root + "image_mean", names_.root + "image_std"),
                          at + "projects.");
    std::int64_t channels = file_.size(at + "projects.0.weight", 0);
    const MogeStackBuilder stack(file_, inputs_.span, graph_);
    const int levels = blocks::layer_count(file_, at + "upsample_blocks.");
    check_moge_levels(file_, at + "upsample_blocks", levels);
    for (int i = 0; i < levels; ++i) {
      const std::string path = "head." + std::to_string(i),
                        level = at + "upsample_blocks." + std::to_string(i) + ".";
      x = stack.grow(path + ".grow", {level + "0.0", level + "0.1", channels, true}, x);
      channels = file_.size(level + "0.1.weight", 0);
      for (int n = 1; n < blocks::layer_count(file_, level); ++n)
        x = stack.residual(path + ".residual." + std::to_string(n), level + std::to_string(n) + ".",
                           x, channels);
    }
    graph_.setting("growth", std::int64_t{1} << levels);
    const Source large = resized(x);
    graph_.output("points", head(large, "points", at + "output_block.0.", channels + 2, 3));
    graph_.output("mask", head(large, "mask", at + "output_block.1.", channels + 2, 1));
  }

 private:
  Source resized(const Source& x) const {
    using B = MogeResize;
    Block block = graph_.add<B>("head.resize");
    block.link(B::x, x)
        .link(B::span, inputs_.span)
        .link(B::row_ids, graph_.input("final_row_ids", kMogeInput))
        .link(B::row_shares, graph_.input("final_row_shares", kMogeInput))
        .link(B::column_ids, graph_.input("final_column_ids", kMogeInput))
        .link(B::column_shares, graph_.input("final_column_shares", kMogeInput));
    return block[B::out];
  }
  Source head(const Source& x, const char* name, const std::string& at, std::int64_t read,
              std::int64_t made) const {
    using B = MogeHead;
    const std::string path = std::string("head.") + name;
    Block block = graph_.add<B>(path);
    block.link(B::x, x);
    blocks::Slots slots(file_, block, path);
    const std::int64_t inner = file_.size(at + "0.weight", 0);
    fill_module(slots, B::conv, B::conv_bias, at + "0", {inner, read, 3, 3});
    fill_module(slots, B::point, B::point_bias, at + "2", {made, inner, 1, 1});
    return block[B::out];
  }

  const Checkpoint& file_;
  const MogeFile& names_;
  const MogeInputs& inputs_;
  Blocks& graph_;
};

// The logarithm of the scale, of the class token.
Source scale_of(const Checkpoint& file, const std::string& at, const std::string& norm,
                const Source& hidden, std::int64_t width, Blocks& graph) {
  using B = TokenHead;
  Block block = graph.add<B>("scale");
  block.link(B::x, hidden).set(B::begin, 0).set(B::end, 1).set(B::pick, 0).set(B::eps, 1e-6);
  blocks::Slots slots(file, block, "scale");
  const std::int64_t first = file.size(at + "0.weight", 0), second = file.size(at + "2.weight", 0);
  fill_module(slots, B::norm, B::norm_bias, norm, {width});
  fill_module(slots, B::first, B::first_bias, at + "0", {first, width});
  fill_module(slots, B::second, B::second_bias, at + "2", {second, first});
  fill_module(slots, B::third, B::third_bias, at + "4", {1, second});
  return block[B::out];
}

void add_second(const Checkpoint& file, const MogeFile& names, const MogeInputs& inputs,
                Blocks& graph) {
  const std::string& root = names.root;
  std::vector<int> taps;
  for (int i = 1; i <= kMogeTaps; ++i) taps.push_back(names.dino.depth / kMogeTaps * i - 1);
  const DinoBuilder dino(file, names.dino, inputs, graph);
  const std::vector<Source> made =
      dino.run(taps, root + "encoder.image_mean", root + "encoder.image_std");
  const MogeStackBuilder stack(file, inputs.span, graph);
  const std::vector<Source> levels =
      stack.neck(root + "neck", dino.cells(made, root + "encoder.output_projections."));
  graph.output("points", stack.head(root + "points_head", levels, 3));
  graph.output("mask", stack.head(root + "mask_head", levels, 1));
  const bool has_normal = file.has(root + "normal_head.input_blocks.0.weight");
  if (has_normal) graph.output("normal", stack.head(root + "normal_head", levels, 3));
  graph.output("scale", scale_of(file, root + "scale_head.", dino.norm(), made.back(),
                                 names.dino.width, graph));
  graph.setting("has_normal", has_normal);
  graph.setting("growth", std::int64_t{1} << (levels.size() - 1));
}

}  // namespace

int Moge::match(const Checkpoint& file, const Value&) { return moge_file(file) ? 100 : 0; }

void Moge::build(const Checkpoint& file, const Value&, Blocks& graph) {
  const std::optional<MogeFile> names = moge_file(file);
  if (!names) throw Error(HEDDLE_INVALID_ARGUMENT, file.path() + ": this is no MoGe.");
  if (names->version > 2)
    throw Error(HEDDLE_UNSUPPORTED,
                file.path() +
                    ": this is MoGe 3, whose refiner ('refiner.*') is not supported. Take MoGe 2, "
                    "such as moge_2_vitl_normal_fp16.safetensors.");
  if (names->dino.depth < kMogeTaps)
    throw Error(HEDDLE_INVALID_ARGUMENT, file.path() + ": DINOv2 has " +
                                             std::to_string(names->dino.depth) +
                                             " layers, of which MoGe reads " +
                                             std::to_string(kMogeTaps) + ". The file is damaged.");
  const auto input = [&](const char* name) { return graph.input(name, kMogeInput); };
  const MogeInputs inputs{input("picture"),    input("row_ids"),       input("row_shares"),
                          input("column_ids"), input("column_shares"), input("span")};
  if (names->version == 1) {
    MogeFirst(file, *names, inputs, graph).run();
    graph.setting("has_normal", false);
  } else {
    add_second(file, *names, inputs, graph);
  }
  graph.setting("family", "moge");
  graph.setting("version", std::int64_t{names->version});
  graph.setting("table", names->dino.table);
  graph.setting("patch", names->dino.patch);
}

}  // namespace heddle::detection
