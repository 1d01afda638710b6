#include "wan_sound.h"

#include <algorithm>
#include <iterator>

#include "patches.h"
#include "plugins/blocks/slots.h"
#include "time_filters.h"
#include "wan_sound_blocks.h"

namespace heddle::denoisers {
namespace {

const std::string kHearing = "casual_audio_encoder.", kInjector = "audio_injector.injector.",
                  kShift = "audio_injector.injector_adain_layers.",
                  kTokenKindTable = "trainable_cond_mask.";
// The layers behind which the published model looks at the sound; no tensor tells them.
constexpr int kSoundLayers[] = {0, 4, 8, 12, 16, 20, 24, 27, 30, 33, 36, 39};
// What a token is, by its row of trainable_cond_mask; kUntold: nothing is added.
constexpr std::int64_t kVideoKind = 0, kReferenceKind = 1, kEarlierKind = 2, kTokenKinds = 3,
                       kUntold = -1;
constexpr std::uint32_t kMayGoBeside =
    HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_BATCH | HEDDLE_INPUT_OPTIONAL;

// Of a filter over `frames` frames, that of frame `k` of them.
Part filter_of_frame(const std::string& tensor, int k) {
  Part part{tensor};
  part.frame = k + 1;
  return part;
}

}  // namespace

WanSoundSizes read_wan_sound_sizes(const Checkpoint& file, const WanNames& names, int layers) {
  WanSoundSizes s{};
  if (!names.has(kHearing + "weights") && !names.has(kHearing + "encoder.padding_tokens")) return s;
  const auto damaged = [&](const std::string& what) {
    return Error(HEDDLE_INVALID_ARGUMENT,
                 file.path() + ": " + what + ". The file is damaged or of another model.");
  };
  s.injectors = blocks::layer_count(file, names.one(kInjector));
  if (s.injectors < 1 || s.injectors > int(std::size(kSoundLayers)) ||
      kSoundLayers[s.injectors - 1] >= layers)
    throw damaged(std::to_string(s.injectors) + " layers that look at a sound in a model of " +
                  std::to_string(layers));
  s.states = file.size(names.one(kHearing + "weights"), 1);
  const std::string apart = names.one(kHearing + "encoder.conv1_local.conv.weight"),
                    half = names.one(kHearing + "encoder.conv2.conv.weight");
  const std::int64_t given = file.size(apart, 0), inner = file.size(half, 1);
  s.numbers = file.size(apart, 1);
  if (inner < 1 || given < inner || given % inner != 0)
    throw damaged(std::to_string(given) + " channels of 'conv1_local' are no whole parts of " +
                  std::to_string(inner));
  s.parts = given / inner;
  return s;
}

WanSound::WanSound(const Checkpoint& file, const WanNames& names, const WanSizes& sizes, double eps,
                   Blocks& graph, const Source& x)
    : file_(file),
      names_(names),
      s_(sizes),
      eps_(eps),
      graph_(graph),
      x_(x),
      reference_(graph.input("reference", kMayGoBeside)),
      motion_(graph.input("motion", kMayGoBeside)) {}

std::pair<Source, Source> WanSound::rope() {
  using B = WanSoundRope;
  Block block = graph_.add<B>("embed.rope");
  block.link(B::x, x_).link(B::reference, reference_).link(B::motion, motion_);
  block.set(B::axis_0, s_.axes[0]).set(B::axis_1, s_.axes[1]).set(B::axis_2, s_.axes[2]);
  return {block[B::cos], block[B::sin]};
}

Source WanSound::begin(const Source& hidden) {
  using B = WanSoundJoin;
  const Source followed = add_tokens("embed.followed", graph_.input("followed", kMayGoBeside),
                                     "cond_encoder", kUntold),
               shown = add_tokens("embed.reference", reference_, "patch_embedding", kReferenceKind),
               before = add_motion();
  add_heard();
  Block block = graph_.add<B>("embed.join");
  block.link(B::hidden, hidden).link(B::followed, followed).link(B::shown, shown);
  block.link(B::before, before);
  blocks::Slots slots(file_, block, "embed.join");
  slots.fill(B::kind, {Part{names_.one(kTokenKindTable + "weight"), kVideoKind, kVideoKind + 1}},
             {1, s_.width});
  return block[B::out];
}

Source WanSound::add_tokens(const std::string& path, const Source& latent,
                            const std::string& module, std::int64_t kind) {
  using B = WanSoundTokens;
  Block block = graph_.add<B>(path);
  block.link(B::latent, latent);
  blocks::Slots slots(file_, block, path);
  slots.fill(B::weight, {filter_of_frame(names_.one(module + ".weight"), 0)},
             {s_.width, s_.channels, 1, kPatch, kPatch});
  slots.fill(B::bias, names_.one(module + ".bias"), {s_.width});
  if (kind != kUntold)
    slots.fill(B::kind, {Part{names_.one(kTokenKindTable + "weight"), kind, kind + 1}},
               {1, s_.width});
  return block[B::out];
}

Source WanSound::add_motion() {
  using B = WanSoundMotion;
  Block block = graph_.add<B>("embed.motion");
  block.link(B::motion, motion_);
  blocks::Slots slots(file_, block, "embed.motion");
  const auto filter = [&](const Weight* frames, int count, const Weight& bias,
                          const std::string& module, std::int64_t side) {
    const std::string at = names_.one("frame_packer." + module);
    for (int k = 0; k < count; ++k)
      slots.fill(frames[k], {filter_of_frame(at + ".weight", k)},
                 {s_.width, s_.channels, std::int64_t{count}, side, side});
    slots.fill(bias, at + ".bias", {s_.width});
  };
  filter(&B::near, 1, B::near_bias, "proj", kPatch);
  filter(B::middle, 2, B::middle_bias, "proj_2x", 2 * kPatch);
  filter(B::far, 4, B::far_bias, "proj_4x", 4 * kPatch);
  slots.fill(B::kind, {Part{names_.one(kTokenKindTable + "weight"), kEarlierKind, kTokenKinds}},
             {1, s_.width});
  return block[B::out];
}

void WanSound::add_heard() {
  using B = WanSoundIn;
  Block block = graph_.add<B>("embed.heard");
  block.link(B::heard, graph_.input("heard", kMayGoBeside)).link(B::x, x_);
  block.set(B::parts, s_.sound.parts).set(B::eps, eps_);
  blocks::Slots slots(file_, block, "embed.heard");
  const std::string encoder = kHearing + "encoder.";
  slots.fill(B::shares, names_.one(kHearing + "weights"), {1, s_.sound.states, 1, 1});
  const auto filter = [&](const Weight* taps, const Weight& bias, const std::string& module,
                          std::int64_t out, std::int64_t in) {
    const std::string at = names_.one(encoder + module + ".conv");
    for (int tap = 0; tap < int(kTimeFilterTaps); ++tap)
      slots.fill(taps[tap], {filter_of_frame(at + ".weight", tap)}, {out, in, kTimeFilterTaps});
    slots.fill(bias, at + ".bias", {out});
  };
  const std::string half = names_.one(encoder + "conv2.conv.weight");
  const std::int64_t inner = file_.size(half, 1), middle = file_.size(half, 0);
  filter(B::first, B::first_bias, "conv1_local", s_.sound.parts * inner, s_.sound.numbers);
  filter(B::whole_first, B::whole_first_bias, "conv1_global", inner, s_.sound.numbers);
  filter(B::second, B::second_bias, "conv2", middle, inner);
  filter(B::third, B::third_bias, "conv3", s_.width, middle);
  slots.fill(B::last, names_.one(encoder + "final_linear.weight"), {s_.width, s_.width});
  slots.fill(B::last_bias, names_.one(encoder + "final_linear.bias"), {s_.width});
  slots.fill(B::more, names_.one(encoder + "padding_tokens"), {1, 1, 1, s_.width});
  heard_ = block[B::out], whole_ = block[B::whole];
}

Source WanSound::add_sound_keys(int injector, const std::string& at) {
  using B = WanKeys;
  const std::string path = "sound." + std::to_string(injector) + ".keys";
  Block block = graph_.add<B>(path);
  block.link(B::seen, heard_).link(B::x, x_).set(B::eps, eps_);
  blocks::Slots slots(file_, block, path);
  for (const bool is_key : {true, false}) {
    const std::string module = names_.one(at + (is_key ? "k" : "v"));
    slots.fill(is_key ? B::k : B::v, module + ".weight", {s_.width, s_.width});
    slots.fill(is_key ? B::k_bias : B::v_bias, module + ".bias", {s_.width});
  }
  slots.fill(B::norm, names_.one(at + "norm_k.weight"), {s_.width});
  return block[B::out];
}

Source WanSound::behind(int layer, const Source& hidden) {
  const int* const end = kSoundLayers + s_.sound.injectors;
  const int* const found = std::find(kSoundLayers, end, layer);
  if (found == end) return hidden;
  const auto k = int(found - kSoundLayers);
  const std::string number = std::to_string(k), at = kInjector + number + ".",
                    shift = names_.one(kShift + number + ".linear"), path = "sound." + number;
  const std::int64_t d = s_.width;
  using S = WanSoundShift;
  Block told = graph_.add<S>(path + ".shift");
  told.link(S::whole, whole_);
  blocks::Slots of_shift(file_, told, path + ".shift");
  of_shift.fill(S::weight, shift + ".weight", {2 * d, d});
  of_shift.fill(S::bias, shift + ".bias", {2 * d});
  using B = WanSoundAdd;
  const Source kv = add_sound_keys(k, at);
  Block block = graph_.add<B>(path + ".add");
  block.link(B::hidden, hidden).link(B::kv, kv).link(B::mod, told[S::out]).link(B::x, x_);
  block.set(B::heads, s_.heads).set(B::eps, eps_);
  blocks::Slots slots(file_, block, path + ".add");
  slots.fill(B::q, names_.one(at + "q.weight"), {d, d});
  slots.fill(B::q_bias, names_.one(at + "q.bias"), {d});
  slots.fill(B::q_norm, names_.one(at + "norm_q.weight"), {d});
  slots.fill(B::proj, names_.one(at + "o.weight"), {d, d});
  slots.fill(B::proj_bias, names_.one(at + "o.bias"), {d});
  return block[B::out];
}

}  // namespace heddle::denoisers
