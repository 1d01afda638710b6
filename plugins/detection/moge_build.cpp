#include "moge_build.h"

#include <algorithm>
#include <cmath>

#include "dino_blocks.h"
#include "moge_stack_blocks.h"

namespace heddle::detection {
namespace {

constexpr std::int64_t kDinoHead = 64;

bool is_set(const Source& source) { return source.port != nullptr; }

[[noreturn]] void refuse_moge(const Checkpoint& file, const std::string& what) {
  throw Error(HEDDLE_INVALID_ARGUMENT, file.path() + ": " + what + " The file is damaged.");
}

}  // namespace

void fill_module(blocks::Slots& slots, const Weight& weight, const Weight& bias,
                 const std::string& module, const Shape& shape) {
  slots.fill(weight, module + ".weight", shape);
  slots.fill(bias, module + ".bias", {shape[0]});
}

std::optional<DinoNames> dino_names(const Checkpoint& file) {
  DinoNames d{};
  auto before = blocks::prefix_before(file, "backbone.pos_embed");
  d.is_published = before.has_value();
  if (!before) before = blocks::prefix_before(file, "backbone.embeddings.position_embeddings");
  if (!before) return std::nullopt;
  d.at = *before + "backbone.";
  const std::string patches = d.top("patch_embed.proj.weight",
                                    "embeddings.patch_embeddings.projection.weight"),
                    places = d.top("pos_embed", "embeddings.position_embeddings");
  d.width = file.size(patches, 0);
  d.patch = file.size(patches, 2);
  const std::int64_t count = file.size(places, 1) - 1;
  d.table = std::int64_t(std::llround(std::sqrt(double(std::max<std::int64_t>(count, 0)))));
  if (d.table < 1 || d.table * d.table != count)
    refuse_moge(file, "tensor '" + places + "' has " + std::to_string(count + 1) +
                          " places, expected one more than a square.");
  if (d.width < kDinoHead || d.width % kDinoHead != 0 || d.patch < 1)
    refuse_moge(file, "tensor '" + patches + "' makes " + std::to_string(d.width) +
                          " numbers of squares of " + std::to_string(d.patch) +
                          " pixels, expected a multiple of " + std::to_string(kDinoHead) +
                          " of some pixels.");
  d.depth = blocks::layer_count(file, d.at + (d.is_published ? "blocks." : "encoder.layer."));
  return d;
}

std::vector<Source> DinoBuilder::run(const std::vector<int>& taps, const std::string& mean,
                                     const std::string& deviation) const {
  std::vector<Source> made;
  Source hidden = embed(mean, deviation);
  const int last = *std::ranges::max_element(taps);
  for (int i = 0; i <= last; ++i) {
    hidden = layer(i, hidden);
    if (std::ranges::find(taps, i) != taps.end()) made.push_back(hidden);
  }
  return made;
}

Source DinoBuilder::embed(const std::string& mean, const std::string& deviation) const {
  using B = DinoEmbed;
  Block block = graph_.add<B>("dino.embed");
  block.link(B::picture, inputs_.picture)
      .link(B::row_ids, inputs_.row_ids)
      .link(B::row_shares, inputs_.row_shares)
      .link(B::column_ids, inputs_.column_ids)
      .link(B::column_shares, inputs_.column_shares);
  blocks::Slots slots(file_, block, "dino.embed");
  slots.fill(B::mean, mean, {1, 3, 1, 1});
  slots.fill(B::deviation, deviation, {1, 3, 1, 1});
  fill_module(slots, B::patches, B::patches_bias,
              d_.top("patch_embed.proj", "embeddings.patch_embeddings.projection"),
              {d_.width, 3, d_.patch, d_.patch});
  slots.fill(B::places, d_.top("pos_embed", "embeddings.position_embeddings"),
             {1, 1 + d_.table * d_.table, d_.width});
  slots.fill(B::class_token, d_.top("cls_token", "embeddings.cls_token"), {1, 1, d_.width});
  return block[B::out];
}

Source DinoBuilder::layer(int index, const Source& hidden) const {
  using B = DinoLayer;
  const std::string path = "dino." + std::to_string(index), at = d_.layer(index);
  const auto name = [&](const char* published, const char* other) {
    return at + (d_.is_published ? published : other);
  };
  const std::string gates = name("mlp.w12", "mlp.weights_in");
  const bool is_gated = file_.has(gates + ".weight");
  const std::int64_t w = d_.width;
  Block block = graph_.add<B>(path);
  block.link(B::hidden, hidden).set(B::heads, w / kDinoHead).set(B::gated, is_gated);
  blocks::Slots slots(file_, block, path);
  fill_module(slots, B::norm1, B::norm1_bias, at + "norm1", {w});
  if (d_.is_published) {
    fill_module(slots, B::qkv, B::qkv_bias, at + "attn.qkv", {3 * w, w});
  } else {
    std::vector<Part> weights, biases;
    for (const char* part : {"query", "key", "value"}) {
      weights.push_back({at + "attention.attention." + part + ".weight"});
      biases.push_back({at + "attention.attention." + part + ".bias"});
    }
    slots.fill(B::qkv, weights, {3 * w, w});
    slots.fill(B::qkv_bias, biases, {3 * w});
  }
  fill_module(slots, B::proj, B::proj_bias, name("attn.proj", "attention.output.dense"), {w, w});
  slots.fill(B::scale1, name("ls1.gamma", "layer_scale1.lambda1"), {w});
  fill_module(slots, B::norm2, B::norm2_bias, at + "norm2", {w});
  const std::string up = is_gated ? gates : at + "mlp.fc1",
                    down = is_gated ? name("mlp.w3", "mlp.weights_out") : at + "mlp.fc2";
  const std::int64_t raised = file_.size(up + ".weight", 0);
  if (is_gated && raised % 2 != 0)
    refuse_moge(file_, "tensor '" + up + ".weight' has " + std::to_string(raised) +
                           " rows, expected as many gates as values.");
  fill_module(slots, B::up, B::up_bias, up, {raised, w});
  fill_module(slots, B::down, B::down_bias, down, {w, is_gated ? raised / 2 : raised});
  slots.fill(B::scale2, name("ls2.gamma", "layer_scale2.lambda1"), {w});
  return block[B::out];
}

Source DinoBuilder::cells(const std::vector<Source>& taps, const std::string& projections) const {
  using B = DinoProject;
  Source sum;
  const std::int64_t made = file_.size(projections + "0.weight", 0);
  for (std::size_t i = 0; i < taps.size(); ++i) {
    const std::string path = "cells." + std::to_string(i);
    Block block = graph_.add<B>(path);
    block.link(B::hidden, taps[i])
        .link(B::row_ids, inputs_.row_ids)
        .link(B::column_ids, inputs_.column_ids);
    if (is_set(sum)) block.link(B::sum, sum);
    blocks::Slots slots(file_, block, path);
    fill_module(slots, B::norm, B::norm_bias, norm(), {d_.width});
    fill_module(slots, B::point, B::point_bias, projections + std::to_string(i),
                {made, d_.width, 1, 1});
    sum = block[B::out];
  }
  return sum;
}

Source MogeStackBuilder::point(const std::string& path, const std::string& module, const Source& x,
                               const Source& grid) const {
  using B = MogePoint;
  Block block = graph_.add<B>(path);
  block.link(B::grid, grid);
  if (is_set(x)) block.link(B::x, x);
  blocks::Slots slots(file_, block, path);
  const std::string weight = module + ".weight";
  fill_module(slots, B::point, B::point_bias, module,
              {file_.size(weight, 0), file_.size(weight, 1), 1, 1});
  return block[B::out];
}

Source MogeStackBuilder::residual(const std::string& path, const std::string& at, const Source& x,
                                  std::int64_t channels) const {
  using B = MogeResidual;
  Block block = graph_.add<B>(path);
  block.link(B::x, x);
  blocks::Slots slots(file_, block, path);
  const std::int64_t inner = file_.size(at + "layers.2.weight", 0);
  if (file_.has(at + "layers.0.weight"))
    fill_module(slots, B::norm1, B::norm1_bias, at + "layers.0", {channels});
  if (file_.has(at + "layers.3.weight"))
    fill_module(slots, B::norm2, B::norm2_bias, at + "layers.3", {inner});
  fill_module(slots, B::first, B::first_bias, at + "layers.2", {inner, channels, 3, 3});
  fill_module(slots, B::second, B::second_bias, at + "layers.5", {channels, inner, 3, 3});
  return block[B::out];
}

Source MogeStackBuilder::grow(const std::string& path, const Growth& how, const Source& x) const {
  using B = MogeGrow;
  Block block = graph_.add<B>(path);
  block.link(B::x, x);
  if (how.sees) block.link(B::span, span_);
  blocks::Slots slots(file_, block, path);
  std::int64_t from = how.from;
  if (file_.has(how.up + ".weight")) {
    const std::int64_t made = file_.size(how.up + ".weight", 1);
    slots.fill(B::up, how.up + ".weight", {how.sees ? from + 2 : from, made, 2, 2});
    slots.fill(B::up_bias, how.up + ".bias", {made});
    from = made;
  }
  fill_module(slots, B::conv, B::conv_bias, how.conv,
              {file_.size(how.conv + ".weight", 0), from, 3, 3});
  return block[B::out];
}

// The residual blocks of a level, behind what it reads.
Source MogeStackBuilder::finish_level(const std::string& name, int level, const Source& x) const {
  const std::string number = std::to_string(level), at = name + ".res_blocks." + number + ".",
                    path = name + "." + number;
  Source made = x;
  const std::int64_t channels = file_.size(name + ".input_blocks." + number + ".weight", 0);
  for (int i = 0; i < blocks::layer_count(file_, at); ++i)
    made = residual(path + ".residual." + std::to_string(i), at + std::to_string(i) + ".", made,
                    channels);
  return made;
}

void check_moge_levels(const Checkpoint& file, const std::string& name, int count) {
  constexpr int kMost = 16;
  if (count < 1 || count > kMost)
    refuse_moge(file, "'" + name + "' has " + std::to_string(count) + " levels, expected 1 to " +
                          std::to_string(kMost) + ".");
}

std::vector<Source> MogeStackBuilder::neck(const std::string& name, const Source& cells) const {
  using B = MogeView;
  std::vector<Source> levels;
  Source x;
  const int count = blocks::layer_count(file_, name + ".input_blocks.");
  check_moge_levels(file_, name + ".input_blocks", count);
  for (int i = 0; i < count; ++i) {
    const std::string number = std::to_string(i), path = name + "." + number,
                      module = name + ".input_blocks." + number, weight = module + ".weight";
    Block block = graph_.add<B>(path + ".view");
    block.link(B::span, span_);
    if (i == 0)
      block.link(B::grid, cells);
    else
      block.link(B::x, x);
    blocks::Slots slots(file_, block, path + ".view");
    const std::int64_t channels = file_.size(weight, 0), read = file_.size(weight, 1);
    if (i == 0 ? read < 3 : read != 2)
      refuse_moge(file_, "tensor '" + weight + "' reads " + std::to_string(read) +
                             " channels, expected 2, of the first level more.");
    fill_module(slots, B::point, B::point_bias, module, {channels, read, 1, 1});
    x = finish_level(name, i, block[B::out]);
    const std::string output = name + ".output_blocks." + number;
    levels.push_back(file_.has(output + ".weight") ? point(path + ".out", output, {}, x) : x);
    const std::string resampler = name + ".resamplers." + number;
    if (i + 1 < count) x = grow(path + ".grow", {resampler + ".0", resampler + ".1", channels}, x);
  }
  return levels;
}

Source MogeStackBuilder::head(const std::string& name, const std::vector<Source>& levels,
                              std::int64_t channels) const {
  Source x;
  for (int i = 0; i < int(levels.size()); ++i) {
    const std::string number = std::to_string(i), path = name + "." + number,
                      module = name + ".input_blocks." + number;
    x = finish_level(name, i, point(path + ".in", module, x, levels[std::size_t(i)]));
    const std::string resampler = name + ".resamplers." + number;
    if (i + 1 < int(levels.size()))
      x = grow(path + ".grow",
               {resampler + ".0", resampler + ".1", file_.size(module + ".weight", 0)}, x);
  }
  const std::string last = name + ".output_blocks." + std::to_string(levels.size() - 1);
  if (const std::int64_t rows = file_.size(last + ".weight", 0); rows != channels)
    refuse_moge(file_, "tensor '" + last + ".weight' has " + std::to_string(rows) +
                           " output channels, expected " + std::to_string(channels) + ".");
  return point(name + ".out", last, {}, x);
}

}  // namespace heddle::detection
