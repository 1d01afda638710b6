#include "wan_animate.h"

#include "patches.h"
#include "plugins/blocks/slots.h"
#include "wan_animate_blocks.h"
#include "wan_motion_block.h"

namespace heddle::denoisers {
namespace {

const std::string kEncoder = "motion_encoder.enc.net_app.convs.", kFace = "face_encoder.",
                  kAdapters = "face_adapter.fuser_blocks.", kMotion = "motion_encoder.enc.fc.";
constexpr std::int64_t kRgb = 3, kLastSide = 4;
constexpr int kTimeTaps = 3;

// Of filters (O, I, ...): both, and a side.
struct FilterSizes {
  std::int64_t out, in, side;
};
FilterSizes filter_sizes(const Checkpoint& file, const std::string& tensor) {
  return {file.size(tensor, 0), file.size(tensor, 1), file.size(tensor, 2)};
}

}  // namespace

AnimateSizes read_animate_sizes(const Checkpoint& file, const WanNames& names, int layers) {
  AnimateSizes s{};
  const auto adapter = [&](int k) {
    return names.has(kAdapters + std::to_string(k) + ".q_norm.weight");
  };
  while (s.adapters <= layers && adapter(s.adapters)) ++s.adapters;
  if (s.adapters == 0) return s;
  if (s.adapters > layers)
    throw Error(HEDDLE_INVALID_ARGUMENT, file.path() +
                                             ": more layers that look at a face than the " +
                                             std::to_string(layers) +
                                             " of the model. The file is damaged or of another "
                                             "model.");
  const auto halving = [&](int k) {
    return names.has(kEncoder + std::to_string(k + 1) + ".conv1.0.weight");
  };
  while (s.halvings < kMotionHalvings && halving(s.halvings)) ++s.halvings;
  s.face_side = kLastSide << s.halvings;
  return s;
}

Source WanAnimate::begin(const Source& hidden) {
  using B = WanPoseAdd;
  face_ = add_face(add_motion());
  Block block = graph_.add<B>("embed.pose");
  block.link(B::hidden, hidden).link(B::x, x_);
  constexpr std::uint32_t kGiven =
      HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_BATCH | HEDDLE_INPUT_OPTIONAL;
  block.link(B::pose, graph_.input("pose", kGiven));
  blocks::Slots slots(file_, block, "embed.pose");
  Part filter{names_.one("pose_patch_embedding.weight")};
  filter.frame = 1;
  slots.fill(B::weight, {filter}, {s_.width, s_.channels, 1, kPatch, kPatch});
  slots.fill(B::bias, names_.one("pose_patch_embedding.bias"), {s_.width});
  return block[B::out];
}

Source WanAnimate::add_motion() {
  using B = WanMotion;
  Block block = graph_.add<B>("embed.motion");
  constexpr std::uint32_t kGiven =
      HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_BATCH | HEDDLE_INPUT_OPTIONAL;
  block.link(B::face, graph_.input("face", kGiven));
  blocks::Slots slots(file_, block, "embed.motion");
  const auto name = [&](const std::string& original) { return names_.one(kEncoder + original); };
  // Biases have axes of pixels in the publishers' files.
  const auto bias = [&](const Weight& slot, const std::string& original, std::int64_t width) {
    const std::string tensor = name(original);
    const bool is_plain = !file_.has(tensor) || file_.info(tensor).rank == 1;
    slots.fill(slot, tensor, is_plain ? Shape{width} : Shape{1, width, 1, 1});
  };
  std::int64_t width = file_.size(name("0.0.weight"), 0);
  slots.fill(B::in, name("0.0.weight"), {width, kRgb, 1, 1});
  bias(B::in_bias, "0.1.bias", width);
  for (int k = 0; k < s_.animate.halvings; ++k) {
    const std::string at = std::to_string(k + 1);
    const std::int64_t next = file_.size(name(at + ".conv2.1.weight"), 0);
    slots.fill(B::first[k], name(at + ".conv1.0.weight"), {width, width, 3, 3});
    bias(B::first_bias[k], at + ".conv1.1.bias", width);
    slots.fill(B::second[k], name(at + ".conv2.1.weight"), {next, width, 3, 3});
    bias(B::second_bias[k], at + ".conv2.2.bias", next);
    slots.fill(B::beside[k], name(at + ".skip.1.weight"), {next, width, 1, 1});
    width = next;
  }
  const std::string last = name(std::to_string(s_.animate.halvings + 1) + ".weight"),
                    axes = names_.one("motion_encoder.dec.direction.weight");
  const std::int64_t style = file_.size(last, 0), shares = file_.size(axes, 1);
  slots.fill(B::last, last, {style, width, kLastSide, kLastSide});
  for (int k = 0; k < kMotionLinears; ++k) {
    const std::string at = names_.one(kMotion + std::to_string(k));
    const std::int64_t rows = k + 1 < kMotionLinears ? style : shares;
    slots.fill(B::linear[k], at + ".weight", {rows, style});
    slots.fill(B::linear_bias[k], at + ".bias", {rows});
  }
  slots.fill(B::directions, axes, {file_.size(axes, 0), shares});
  return block[B::out];
}

Source WanAnimate::add_face(const Source& motion) {
  using B = WanFaceIn;
  Block block = graph_.add<B>("embed.face");
  const std::string apart = names_.one(kFace + "conv1_local.conv.weight"),
                    half = names_.one(kFace + "conv2.conv.weight");
  const FilterSizes first = filter_sizes(file_, apart);
  const std::int64_t inner = file_.size(half, 0);
  if (inner < 1 || first.out % inner != 0)
    throw Error(HEDDLE_INVALID_ARGUMENT, file_.path() + ": " + std::to_string(first.out) +
                                             " channels of 'conv1_local' are no " +
                                             "whole parts of " + std::to_string(inner) +
                                             ". The file is damaged or of another model.");
  block.link(B::motion, motion).link(B::x, x_).set(B::parts, first.out / inner).set(B::eps, eps_);
  blocks::Slots slots(file_, block, "embed.face");
  const auto filter = [&](const Weight* taps, const Weight& bias, const std::string& module,
                          std::int64_t out, std::int64_t in) {
    const std::string at = names_.one(kFace + module + ".conv.weight");
    for (int tap = 0; tap < kTimeTaps; ++tap) {
      Part part{at};
      part.frame = tap + 1;
      slots.fill(taps[tap], {part}, {out, in, kTimeTaps});
    }
    slots.fill(bias, names_.one(kFace + module + ".conv.bias"), {out});
  };
  filter(B::first, B::first_bias, "conv1_local", first.out, first.in);
  filter(B::second, B::second_bias, "conv2", inner, inner);
  filter(B::third, B::third_bias, "conv3", inner, inner);
  slots.fill(B::last, names_.one(kFace + "out_proj.weight"), {s_.width, inner});
  slots.fill(B::last_bias, names_.one(kFace + "out_proj.bias"), {s_.width});
  slots.fill(B::more, names_.one(kFace + "padding_tokens"), {1, 1, 1, s_.width});
  return block[B::out];
}

Source WanAnimate::behind(int layer, const Source& hidden) {
  // They are spread evenly.
  const int step = s_.layers / s_.animate.adapters, k = layer / step;
  if (layer % step != 0 || k >= s_.animate.adapters) return hidden;
  const std::string path = "face." + std::to_string(k), at = kAdapters + std::to_string(k) + ".";
  using K = WanFaceKeys;
  Block keys = graph_.add<K>(path + ".keys");
  keys.link(K::tokens, face_).set(K::heads, s_.heads).set(K::eps, eps_);
  blocks::Slots of_keys(file_, keys, path + ".keys");
  const std::int64_t d = s_.width;
  const bool is_whole = file_.has(names_.one(at + "linear1_kv.weight"));
  const auto both = [&](const Weight& slot, const std::string& kind, Shape shape) {
    if (is_whole) return of_keys.fill(slot, names_.one(at + "linear1_kv" + kind), shape);
    of_keys.fill(slot,
                 {{names_.one(at + "linear1_k" + kind)}, {names_.one(at + "linear1_v" + kind)}},
                 shape);
  };
  both(K::kv, ".weight", {2 * d, d});
  both(K::kv_bias, ".bias", {2 * d});
  of_keys.fill(K::k_norm, names_.one(at + "k_norm.weight"), {s_.head()});
  using B = WanFaceAdd;
  Block block = graph_.add<B>(path + ".add");
  block.link(B::hidden, hidden).link(B::kv, keys[K::out]).link(B::x, x_);
  block.set(B::heads, s_.heads).set(B::eps, eps_);
  blocks::Slots slots(file_, block, path + ".add");
  slots.fill(B::q, names_.one(at + "linear1_q.weight"), {d, d});
  slots.fill(B::q_bias, names_.one(at + "linear1_q.bias"), {d});
  slots.fill(B::q_norm, names_.one(at + "q_norm.weight"), {s_.head()});
  slots.fill(B::proj, names_.one(at + "linear2.weight"), {d, d});
  slots.fill(B::proj_bias, names_.one(at + "linear2.bias"), {d});
  return block[B::out];
}

}  // namespace heddle::denoisers
