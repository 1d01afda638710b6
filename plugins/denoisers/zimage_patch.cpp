#include "zimage_patch.h"

#include <algorithm>
#include <cmath>

#include <heddle/checked.hpp>
#include <heddle/ops.hpp>

#include "patches.h"
#include "plugins/blocks/wide.h"
#include "zimage_blocks.h"

namespace heddle::denoisers {
namespace {

constexpr const char* kHintIn = "control_all_x_embedder.2-1";

// Where the picture's tokens begin in a sequence that ends with what fills them up.
std::int64_t picture_begin(std::int64_t length, std::int64_t count, std::int64_t multiple) {
  return length - (count + multiple - 1) / multiple * multiple;
}

// An untrained layer adds nothing: it was made of zeros. Its bias tells, which is short.
bool is_untrained(const Checkpoint& file, const std::string& module) {
  const std::string name = module + ".bias";
  if (file.info(name).rank != 1 || file.size(name, 0) == 0) return false;  // its slot says so
  std::vector<double> bias(std::size_t(file.size(name, 0)));
  check(service<heddle_checkpoint_service>().numbers(
      file.raw(), name.c_str(), checked_cast<std::uint32_t>(bias.size(), "the bias"), bias.data()));
  return std::ranges::all_of(bias, [](double number) { return number == 0; });
}

Source add_hint_tokens(const Checkpoint& file, const std::string& prefix, const std::string& path,
                       const Source& hint, std::int64_t hidden, Blocks& graph) {
  using B = ZImageImageIn;
  Block block = graph.add<B>(path);
  block.link(B::x, hint).set(B::multiple, std::int64_t{1});
  blocks::Slots slots(file, block, path);
  const std::string module = prefix + kHintIn;
  slots.fill(B::weight, module + ".weight", {hidden, file.size(module + ".weight", 1)});
  slots.fill(B::bias, module + ".bias", {hidden});
  return block[B::out];
}

}  // namespace

void ZImagePictureRows::execute(Context& ctx) {
  const Tensor latent = ctx[x], table = ctx[all_cos];
  const std::int64_t count = token_count(latent, kPatch),
                     begin = picture_begin(table.size(0), count, ctx[multiple]);
  ctx[cos] = ops::contiguous(ctx, table.slice(0, begin, begin + count));
  ctx[sin] = ops::contiguous(ctx, ctx[all_sin].slice(0, begin, begin + count));
}

void ZImageControlBegin::execute(Context& ctx) {
  const heddle_shard own = ctx.shard(control), shard = ctx.shard(hidden);
  const Tensor made = blocks::wide_linear(ctx, ctx[control], ctx[weight], ctx[bias]);
  const Tensor all = ops::all_gather(ctx, ctx[hidden], 1, shard.begin, shard.total);
  const std::int64_t first = picture_begin(shard.total, own.total, ctx[multiple]);
  ctx[out] = ops::add(ctx, all.slice(1, first + own.begin, first + own.end), made);
}

void ZImageControlAdd::execute(Context& ctx) {
  const Tensor x = ctx[hidden];
  const heddle_shard own = ctx.shard(control), shard = ctx.shard(hidden);
  const Tensor made = ops::all_gather(
      ctx, blocks::wide_linear(ctx, ctx[control], ctx[weight], ctx[bias]), 1, own.begin, own.total);
  // The picture's tokens, of those of this device.
  const std::int64_t length = x.size(1),
                     first = picture_begin(shard.total, own.total, ctx[multiple]) - shard.begin,
                     begin = std::clamp<std::int64_t>(first, 0, length),
                     end = std::clamp<std::int64_t>(first + own.total, begin, length);
  if (begin == end) {
    ctx[out] = x;
    return;
  }
  const Tensor sum = ctx.make_like(x);
  if (begin > 0) ops::copy_into(ctx, x.slice(1, 0, begin), sum.slice(1, 0, begin));
  ops::combine_into(
      ctx,
      {{1.0, x.slice(1, begin, end)}, {ctx[strength], made.slice(1, begin - first, end - first)}},
      sum.slice(1, begin, end));
  if (end < length) ops::copy_into(ctx, x.slice(1, end, length), sum.slice(1, end, length));
  ctx[out] = sum;
}

ZImagePatch::ZImagePatch(const Checkpoint& file, const ModelPatch& patch, const NextDitKind& kind,
                         const ZImageSizes& sizes, Blocks& graph)
    : file_(file),
      patch_(patch),
      kind_(kind),
      s_(sizes),
      graph_(graph),
      names_(ZImageNames::of_patch(file, patch.prefix)),
      layers_(file, names_, kind, sizes, graph),
      count_(names_.count("control_layers")),
      refiners_(names_.count("control_noise_refiner")) {
  if (count_ == 0) throw Error(HEDDLE_INVALID_ARGUMENT, "it has no layers ('control_layers.0...')");
  const std::string first = patch.prefix + "control_noise_refiner.0.after_proj";
  if (refiners_ == 0)
    refines_ = Kind::repeated;
  else if (file.has(first + ".bias"))
    refines_ = is_untrained(file, first) ? Kind::repeated : Kind::beside;
}

void ZImagePatch::begin(const Source& x, const Source& img, const ZImageTold& told) {
  const Source hint = add_hint_input(patch_, graph_);
  control_ = add_hint_tokens(file_, patch_.prefix, patch_.path + ".hint", hint, s_.hidden, graph_);
  using B = ZImagePictureRows;
  Block rows = graph_.add<B>(patch_.path + ".rows");
  rows.link(B::all_cos, told.cos).link(B::all_sin, told.sin).link(B::x, x);
  rows.set(B::multiple, kind_.multiple);
  told_ = {told.vector, rows[B::cos], rows[B::sin]};
  read_ = img;
  ZImageTold alone = told_;
  alone.point = x;
  for (int i = 0; refines_ == Kind::alone && i < refiners_; ++i)
    control_ = layers_.add(path_of(Part::refiners, i),
                           "control_noise_refiner." + std::to_string(i) + ".", control_, alone);
}

std::string ZImagePatch::path_of(Part part, int index) const {
  return patch_.path + (part == Part::refiners ? ".refine." : ".layer.") + std::to_string(index);
}

void ZImagePatch::run(Part part, const std::string& list, int index) {
  const std::string at = list + "." + std::to_string(index) + ".", path = path_of(part, index);
  if (index == 0) {
    using B = ZImageControlBegin;
    Block block = graph_.add<B>(path + ".begin");
    block.link(B::control, control_).link(B::hidden, read_).set(B::multiple, kind_.multiple);
    blocks::Slots slots(file_, block, path + ".begin");
    layers_.linear(slots, B::weight, B::bias, at + "before_proj", s_.hidden, s_.hidden);
    control_ = block[B::out];
  }
  control_ = layers_.add(path, at, control_, told_);
}

Source ZImagePatch::added(Part part, const std::string& list, int index, const Source& hidden,
                          const Source& control) const {
  using B = ZImageControlAdd;
  const std::string path = path_of(part, index) + ".add";
  Block block = graph_.add<B>(path);
  block.link(B::hidden, hidden).link(B::control, control);
  block.set(B::strength, patch_.strength).set(B::multiple, kind_.multiple);
  blocks::Slots slots(file_, block, path);
  layers_.linear(slots, B::weight, B::bias, list + "." + std::to_string(index) + ".after_proj",
                 s_.hidden, s_.hidden);
  return block[B::out];
}

Source ZImagePatch::after_refiner(int index, const Source& img) {
  if (refines_ == Kind::beside && index < refiners_) {
    run(Part::refiners, "control_noise_refiner", index);
    return added(Part::refiners, "control_noise_refiner", index, img, control_);
  }
  if (refines_ != Kind::repeated || index >= std::min(2, count_)) return img;
  // The second adds what the second layer made, and all that follow pass before the model goes on.
  run(Part::refiners, "control_layers", index);
  const Source sum = added(Part::refiners, "control_layers", index, img, control_);
  for (int i = 2; index == 1 && i < count_; ++i) run(Part::refiners, "control_layers", i);
  return sum;
}

Source ZImagePatch::after_layer(int index, const Source& hidden) {
  const int every = std::max(1, int(std::nearbyint(double(s_.layers) / double(count_))));
  if (index % every != 0 || index / every >= count_) return hidden;
  run(Part::layers, "control_layers", index / every);
  return added(Part::layers, "control_layers", index / every, hidden, control_);
}

int ZImageFun::match(const Checkpoint& file, const Value&) {
  return file.has(std::string(kHintIn) + ".weight") &&
                 file.has("control_layers.0.before_proj.weight")
             ? 100
             : 0;
}

void ZImageFun::build(const Checkpoint& file, const Value&, Blocks& graph) {
  const std::string weight = std::string(kHintIn) + ".weight";
  const std::int64_t hidden = file.size(weight, 0), hints = file.size(weight, 1) / kPatchArea;
  const Source hint = graph.input("hint", HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_BATCH);
  graph.output("tokens", add_hint_tokens(file, "", "hint", hint, hidden, graph));
  // With a mask between the latents of two pictures, their number is odd.
  add_patch_settings("z-image", hidden, hints % 2 == 0 ? hints : (hints - 1) / 2, hints, graph);
}

}  // namespace heddle::denoisers
