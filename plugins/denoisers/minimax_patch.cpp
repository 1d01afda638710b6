#include "minimax_patch.h"

#include <algorithm>

#include <heddle/ops.hpp>

#include "joint_attention.h"
#include "patches.h"
#include "plugins/blocks/wide.h"

namespace heddle::denoisers {
namespace {

constexpr const char* kControlIn = "control_proj_in";
constexpr const char* kControlLayers = "control_blocks";
constexpr std::int64_t kPublishedLayers = 50;  // of the model

std::string control_layer(std::size_t index) {
  return std::string(kControlLayers) + "." + std::to_string(index) + ".";
}

// Of this device's tokens, those that lie in [begin, end) of all.
Range here_of(const heddle_shard& shard, std::int64_t length, std::int64_t begin,
              std::int64_t end) {
  return {std::clamp<std::int64_t>(begin - shard.begin, 0, length),
          std::clamp<std::int64_t>(end - shard.begin, 0, length)};
}

// Tokens (1|B, V, 4 C) f32 of a hint.
Tensor packed_hint(Context& ctx, const Tensor& hint) {
  const std::int64_t items = hint.size(0), channels = hint.size(1), frames = hint.size(2),
                     rows = hint.size(3) / kPatch, columns = hint.size(4) / kPatch;
  const Tensor packed =
      ctx.make({items, frames * rows * columns, channels * kPatchArea}, HEDDLE_F32);
  ops::copy_into(ctx,
                 hint.reshape({items, channels, frames, rows, kPatch, columns, kPatch})
                     .permute({0, 2, 3, 5, 1, 4, 6}),
                 packed.reshape({items, frames, rows, columns, channels, kPatch, kPatch}));
  return packed;
}

void check_hint(const Tensor& hint, const Tensor& matrix) {
  if (hint.rank() == 5 && hint.size(1) * kPatchArea == matrix.size(1) &&
      hint.size(3) % kPatch == 0 && hint.size(4) % kPatch == 0)
    return;
  throw Error(HEDDLE_INVALID_ARGUMENT,
              "the Fun ControlNet reads hints of " + std::to_string(matrix.size(1) / kPatchArea) +
                  " channels with even sides, (1, C, F, H, W), got " +
                  blocks::shape_text(hint.shape()) +
                  ". Apply it with MiniMaxH3FunControlNetApply to a latent of "
                  "EmptyMiniMaxH3LatentAV.");
}

// Numbers of layers, of the metadata, or spread evenly.
std::vector<std::int64_t> places_told(const Checkpoint& file, int layers) {
  constexpr const char* kPlaces = "control_blocks_places";
  std::vector<std::int64_t> places;
  const std::optional<std::string> text = file.meta(kPlaces);
  if (!text) {
    if (layers == 0 || kPublishedLayers % layers != 0)
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  file.path() + ": its " + std::to_string(layers) +
                      " layers are not spread evenly over the " + std::to_string(kPublishedLayers) +
                      " of MiniMax H3, and no metadata '" + kPlaces +
                      "' tells where they are. The file is damaged or of another model.");
    for (int i = 0; i < layers; ++i) places.push_back(i * (kPublishedLayers / layers));
    return places;
  }
  heddle_value* out = nullptr;
  const std::string name = file.path() + ", metadata '" + kPlaces + "'";
  check(service<heddle_json_service>().parse(services.host, {text->data(), text->size()},
                                             name.c_str(), &out));
  const Value list = Value::adopt(out);
  for (std::uint32_t i = 0; i < list.count(); ++i) {
    const Value item = list.item(i);
    places.push_back(item.is(HEDDLE_KIND_INT) ? item.as<std::int64_t>() : -1);
  }
  const bool rises = std::ranges::adjacent_find(places, std::greater_equal()) == places.end();
  if (std::int64_t(places.size()) == layers && layers > 0 && places[0] == 0 && rises) return places;
  throw Error(HEDDLE_INVALID_ARGUMENT,
              name + " is " + *text + ". It has to be a list of " + std::to_string(layers) +
                  " rising numbers, one for each of its layers, the first of which is 0. The file "
                  "is damaged or of another model.");
}

}  // namespace

void MinimaxControlBegin::execute(Context& ctx) {
  const Tensor x = ctx[hidden], given = ctx[hint], matrix = ctx[in];
  check_hint(given, matrix);
  const heddle_shard shard = ctx.shard(hidden);
  const std::int64_t length = x.size(1), batch = x.size(0), width = x.size(2),
                     text = ctx[context].size(1),
                     shown = ctx.has(references) ? ctx[references].size(1) : 0,
                     count = token_count(given, kPatch), video = shard.total - count;
  const Tensor mixed = ctx.make_like(x);
  ops::copy_into(ctx, x, mixed);
  if (const Range at = here_of(shard, length, text, text + shown); at.begin < at.end) {
    const Tensor offset = ctx.make({width}, HEDDLE_F32), to = tokens(mixed, at);
    ops::copy_into(ctx, ctx[in_bias], offset);
    ops::fill(ctx, to, 0);
    ops::add_into(ctx, to, offset.reshape({1, 1, width}), to);
  }
  if (const Range at = here_of(shard, length, video, shard.total); at.begin < at.end) {
    const std::int64_t from = at.begin + shard.begin - video;
    const Tensor own =
        ops::contiguous(ctx, tokens(packed_hint(ctx, given), {from, from + at.end - at.begin}));
    const Tensor made = blocks::wide_linear(ctx, own, matrix, ctx[in_bias]);
    for (std::int64_t item = 0; item < batch; ++item) {
      const std::int64_t row = made.size(0) == 1 ? 0 : item;
      ops::copy_into(ctx, made.slice(0, row, row + 1), tokens(mixed, at).slice(0, item, item + 1));
    }
  }
  ctx[out] = blocks::wide_linear(ctx, mixed, ctx[before], ctx[before_bias], HEDDLE_ACT_NONE, x);
}

void MinimaxControlAdd::execute(Context& ctx) {
  const Tensor x = ctx[hidden], stream = ctx[control];
  const heddle_shard shard = ctx.shard(hidden);
  const auto count_of = [&](const Input<Tensor>& given) {
    return ctx.has(given) ? ctx[given].size(1) : 0;
  };
  const std::int64_t length = x.size(1), sound = ctx[context].size(1) + count_of(references),
                     video = sound + count_of(sound_references) + 2 * ctx[audio].size(3);
  const Tensor sum = ctx.make_like(x);
  for (const auto& [begin, end] :
       {std::pair{std::int64_t{0}, sound}, std::pair{video, std::int64_t(shard.total)}}) {
    const Range at = here_of(shard, length, begin, end);
    if (at.begin == at.end) continue;
    const Tensor made =
        blocks::wide_linear(ctx, ops::contiguous(ctx, tokens(stream, at)), ctx[weight], ctx[bias]);
    ops::combine_into(ctx, {{1.0, tokens(x, at)}, {ctx[strength], made}}, tokens(sum, at));
  }
  if (const Range at = here_of(shard, length, sound, video); at.begin < at.end)
    ops::copy_into(ctx, tokens(x, at), tokens(sum, at));
  ctx[out] = sum;
}

MinimaxPatch::MinimaxPatch(const Checkpoint& file, const ModelPatch& patch,
                           const MinimaxSizes& sizes, bool has_table, double eps, Blocks& graph)
    : file_(file),
      patch_(patch),
      s_(sizes),
      graph_(graph),
      names_(MinimaxNames::of_patch(file, patch.prefix)),
      layers_(file, names_, sizes, eps, graph) {
  const Value places = patch.config.field("places");
  for (std::uint32_t i = 0; i < places.count(); ++i)
    places_.push_back(places.item(i).as<std::int64_t>());
  check_places();
  check_vectors(has_table);
}

void MinimaxPatch::check_places() const {
  if (!places_.empty() && places_.back() < s_.layers) return;
  throw Error(HEDDLE_INVALID_ARGUMENT,
              "its last layer adds behind layer " +
                  std::to_string(places_.empty() ? 0 : places_.back()) +
                  " of the model, which has " + std::to_string(s_.layers) +
                  ", counted from 0. Load a patch that was made for this model.");
}

void MinimaxPatch::check_vectors(bool has_table) const {
  const std::string tensor = names_.one(control_layer(0) + "adaln_proj.linear.weight");
  if (!file_.has(tensor)) return;  // its slot says so
  const std::int64_t numbers = file_.size(tensor, 1);
  if (numbers == s_.vector && (has_table || !patch_.config.get<bool>("of_table", false))) return;
  throw Error(HEDDLE_INVALID_ARGUMENT,
              "its layers read times of " + std::to_string(numbers) +
                  " numbers, the model makes such of " + std::to_string(s_.vector) +
                  (has_table ? " by a table" : " by a network") +
                  ": files of either go together with less weights ('pruned'), or as published. "
                  "Load the one that belongs to the model.");
}

void MinimaxPatch::begin(const Source& hidden, const MinimaxTold& told) {
  using B = MinimaxControlBegin;
  read_ = told;
  const std::string path = patch_.path + ".begin", module = kControlIn;
  Block block = graph_.add<B>(path);
  block.link(B::hidden, hidden).link(B::hint, add_hint_input(patch_, graph_));
  block.link(B::context, told.context).link(B::references, told.references);
  blocks::Slots slots(file_, block, path);
  const std::string matrix = names_.one(module + ".weight");
  layers_.linear(slots, B::in, B::in_bias, module, s_.width,
                 file_.has(matrix) ? file_.size(matrix, 1) : kPatchArea);
  layers_.linear(slots, B::before, B::before_bias, control_layer(0) + "before_proj", s_.width,
                 s_.width);
  control_ = block[B::out];
}

Source MinimaxPatch::after_layer(int index, const Source& hidden) {
  const auto place = std::ranges::find(places_, std::int64_t(index));
  if (place == places_.end()) return hidden;
  const auto number = std::size_t(place - places_.begin());
  const std::string at = control_layer(number),
                    path = patch_.path + ".layer." + std::to_string(number);
  control_ = layers_.add(path, at, control_, read_);
  using B = MinimaxControlAdd;
  Block block = graph_.add<B>(path + ".add");
  block.link(B::hidden, hidden).link(B::control, control_).set(B::strength, patch_.strength);
  block.link(B::context, read_.context).link(B::audio, read_.audio);
  block.link(B::references, read_.references).link(B::sound_references, read_.sound_references);
  blocks::Slots slots(file_, block, path + ".add");
  layers_.linear(slots, B::weight, B::bias, at + "after_proj", s_.width, s_.width);
  return block[B::out];
}

int MinimaxFun::match(const Checkpoint& file, const Value&) {
  const MinimaxNames names = MinimaxNames::of_patch(file, "");
  for (const char* tensor : {"adaln_proj.linear", "before_proj", "after_proj", "attn.qkv_proj",
                             "attn.q_norm", "mlp.fc1"})
    if (!names.has(control_layer(0) + tensor + ".weight")) return 0;
  return names.has(std::string(kControlIn) + ".weight") ? 100 : 0;
}

void MinimaxFun::build(const Checkpoint& file, const Value&, Blocks& graph) {
  using B = MinimaxVideoIn;
  const MinimaxNames names = MinimaxNames::of_patch(file, "");
  const std::string module = kControlIn, matrix = names.one(module + ".weight");
  const std::int64_t width = file.size(matrix, 0), hints = file.size(matrix, 1) / kPatchArea;
  Block block = graph.add<B>("hint");
  block.link(B::x, graph.input("hint", HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_BATCH));
  blocks::Slots slots(file, block, "hint");
  slots.fill(B::weight, matrix, {width, hints * kPatchArea});
  slots.fill(B::bias, names.one(module + ".bias"), {width});
  graph.output("tokens", block[B::out]);
  // With a mask between the latents of two videos, their number is odd.
  add_patch_settings("minimax-h3", width, hints % 2 == 0 ? hints : (hints - 1) / 2, hints, graph);
  std::vector<Value> places;
  for (const std::int64_t place : places_told(file, names.count(kControlLayers)))
    places.push_back(value_of(place));
  const bool of_table = file.meta("minimax_h3_fun_controlnet") == "adaln_basis";
  graph.setting(
      "patch_config",
      Record().set("places", list_of(places)).set("of_table", value_of(of_table)).value());
  graph.setting("hint_video", true);
  graph.setting("hint_holes_mean", file.meta("inpaint_masked_pixel_mode") == "post_norm");
}

}  // namespace heddle::denoisers
