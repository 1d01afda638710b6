#include "wan.h"

#include <optional>
#include <tuple>

#include "patches.h"
#include "plugins/blocks/slots.h"
#include "wan_animate.h"
#include "wan_causal.h"
#include "wan_dancer.h"
#include "wan_fun.h"
#include "wan_humo.h"
#include "wan_humo_blocks.h"
#include "wan_names.h"
#include "wan_pose_blocks.h"
#include "wan_scail.h"
#include "wan_seen.h"
#include "wan_sizes.h"
#include "wan_sound.h"
#include "wan_sound_blocks.h"
#include "wan_sources.h"
#include "wan_talk.h"
#include "wan_talk_blocks.h"
#include "wan_vace_blocks.h"

namespace heddle::denoisers {
namespace {

// Builds the graph of one file.
class WanBuilder {
 public:
  WanBuilder(const Checkpoint& file, const WanNames& names, const WanSizes& sizes,
             const Value& config, Blocks& graph)
      : file_(file),
        names_(names),
        s_(sizes),
        eps_(config.get<double>("eps", 1e-6)),
        graph_(graph),
        seen_(file, names, sizes, eps_, graph) {}

  // talk: a model patch, or nullptr.
  void run(const ModelPatch* talk) {
    x_ = graph_.input("x", HEDDLE_INPUT_PER_STEP | HEDDLE_INPUT_BATCH);
    const Source timestep = graph_.input("timestep", HEDDLE_INPUT_PRECOMPUTED);
    const Source vector = embed_vector(timestep),
                 shared = share_modulation("embed.modulation", vector);
    const WanFun fun(file_, names_, s_, graph_);
    std::optional<Source> reference;
    if (s_.fun.reference > 0) reference = fun.embed_reference();
    std::optional<WanSound> sound;
    if (s_.sound.injectors > 0) sound.emplace(file_, names_, s_, eps_, graph_, x_);
    if (s_.sound.humo.parts > 0) {
      humo_.emplace(file_, names_, s_, eps_, graph_, x_);
      reference = humo_->shown();
    }
    std::optional<WanScail> scail;
    if (s_.animate.masks > 0) scail.emplace(file_, names_, s_, graph_, x_);
    std::optional<WanSources> sources;
    if (talk == nullptr && s_.takes_sources()) sources.emplace(file_, names_, s_, graph_, x_);
    if (s_.sound.is_music()) dancer_.emplace(file_, names_, s_, eps_, graph_, x_);
    if (dancer_)
      std::tie(cos_, sin_) = dancer_->rope();
    else if (sound)
      std::tie(cos_, sin_) = sound->rope();
    else if (scail)
      std::tie(cos_, sin_) = scail->rope();
    else if (sources)
      std::tie(cos_, sin_) = sources->rope();
    else
      add_rope(reference);
    const Source text = seen_.text("embed.text", graph_.input("context", kGiven));
    const std::optional<Source> vision = add_vision();
    Source hidden = embed_latent();
    if (humo_)
      hidden = humo_->begin(hidden);
    else if (reference || s_.fun.camera > 0)
      hidden = fun.join(hidden, reference);
    if (sound) hidden = sound->begin(hidden);
    if (scail) hidden = scail->begin(hidden);
    if (sources) hidden = sources->begin(hidden);
    std::optional<WanAnimate> animate;
    if (s_.animate.adapters > 0) {
      animate.emplace(file_, names_, s_, eps_, graph_, x_);
      hidden = animate->begin(hidden);
    }
    std::optional<VaceStream> vace;
    if (s_.vace.layers > 0) vace = begin_vace(hidden);
    std::optional<PoseStream> poses;
    if (s_.animate.follows_poses) poses = begin_poses();
    if (talk != nullptr) of_patch(*talk, [&] { talk_.emplace(file_, *talk, s_, graph_, x_); });
    for (int i = 0; i < s_.layers; ++i) {
      const std::string number = std::to_string(i), at = "blocks." + number + ".";
      if (poses) pass_poses("pose." + number, at, *poses);
      const auto layer = [&] {
        return add_whole_layer("layer." + number, at, hidden, shared, text, vision,
                               poses ? &*poses : nullptr, i);
      };
      hidden = talk != nullptr ? of_patch(*talk, layer) : layer();
      // The layers that hints are added behind are spread evenly.
      const int step = vace ? s_.layers / s_.vace.layers : 1;
      if (vace && i % step == 0 && i / step < s_.vace.layers)
        hidden = add_vace(i / step, *vace, hidden, shared, text);
      if (animate) hidden = animate->behind(i, hidden);
      if (sound) hidden = sound->behind(i, hidden);
      if (dancer_) hidden = dancer_->behind(i, hidden);
    }
    const Source mod = modulate("final", vector, "head.modulation", 2);
    graph_.output("out", dancer_ ? dancer_->final_block(
                                       hidden, mod,
                                       modulate("final_apart", vector, "head_global.modulation", 2))
                                 : add_final(hidden, mod));
  }

 private:
  static constexpr std::uint32_t kGiven = HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_BATCH;

  void linear(blocks::Slots& slots, const Weight& matrix, const Weight& bias,
              const std::string& module, std::int64_t out, std::int64_t in) const {
    slots.fill(matrix, names_.one(module + ".weight"), {out, in});
    slots.fill(bias, names_.one(module + ".bias"), {out});
  }
  void vector_of(blocks::Slots& slots, const Weight& weight, const std::string& tensor,
                 std::int64_t width) const {
    slots.fill(weight, names_.one(tensor), {width});
  }

  // A video of poses on its way through the layers, and what the last of them made of it.
  struct PoseStream {
    Source hidden, shared, text, vision, cos, sin, kept;
  };
  // A layer with what it is modulated by and what it looks at. number: of the model's own.
  Source add_whole_layer(const std::string& path, const std::string& at, const Source& hidden,
                         const Source& shared, const Source& text,
                         const std::optional<Source>& vision, const PoseStream* poses = nullptr,
                         int number = 0) {
    const Source mod = s_.tells_frames() ? shared : modulate(path, shared, at + "modulation", 6);
    const Source text_kv = seen_.keys(path + ".text", text, at + "cross_attn.", "", x_);
    std::optional<Source> vision_kv;
    if (vision) vision_kv = seen_.keys(path + ".vision", *vision, at + "cross_attn.", "_img", x_);
    if (s_.sound.injectors > 0)
      return add_layer<WanSoundLayer>(path + ".block", at, hidden, mod, text_kv, vision_kv)
          .link(WanSoundLayer::x, x_)[WanLayer::out];
    if (humo_) {
      Block block = add_layer<WanHumoLayer>(path + ".block", at, hidden, mod, text_kv, vision_kv);
      humo_->add_to(block, path + ".block", at);
      return block[WanLayer::out];
    }
    if (talk_) {
      Block block = add_layer<WanTalkLayer>(path + ".block", at, hidden, mod, text_kv, vision_kv);
      talk_->add_to(block, path + ".block", number);
      return block[WanLayer::out];
    }
    if (causal_) {
      Block block = add_layer<WanCausalLayer>(path + ".block", at, hidden, mod, text_kv, vision_kv);
      causal_->add_to(block, number);
      return block[WanLayer::out];
    }
    if (poses == nullptr)
      return add_layer<WanLayer>(path + ".block", at, hidden, mod, text_kv,
                                 vision_kv)[WanLayer::out];
    Block block = add_layer<WanPosedLayer>(path + ".block", at, hidden, mod, text_kv, vision_kv);
    block.link(WanPosedLayer::posed, poses->kept).link(WanPosedLayer::x, x_);
    return block[WanLayer::out];
  }

  // Wan Animate 2: poses are seen at one level, so that what layers make of them is made once in a
  // run.
  PoseStream begin_poses() {
    constexpr std::uint32_t kMaybe = kGiven | HEDDLE_INPUT_OPTIONAL;
    const Source pose = graph_.input("pose", kMaybe);
    PoseStream poses;
    poses.shared = share_modulation("embed.pose_modulation", embed_pose_vector());
    poses.text = seen_.text("embed.pose_text", graph_.input("pose_context", kMaybe));
    poses.vision = seen_.vision("embed.pose_vision", graph_.input("pose_vision", kMaybe));
    Block in = graph_.add<WanPoseIn>("embed.pose");
    in.link(WanPoseIn::x, x_).link(WanPoseIn::pose, pose);
    blocks::Slots slots(file_, in, "embed.pose");
    Part filter{names_.one("patch_embedding.weight")};
    filter.frame = 1;
    slots.fill(WanPoseIn::weight, {filter}, {s_.width, s_.in_channels, 1, kPatch, kPatch});
    vector_of(slots, WanPoseIn::bias, "patch_embedding.bias", s_.width);
    poses.hidden = in[WanPoseIn::out];
    using R = WanPoseRope;
    Block rope = graph_.add<R>("embed.pose_rope");
    rope.link(R::x, x_).link(R::pose, pose);
    rope.set(R::axis_0, s_.axes[0]).set(R::axis_1, s_.axes[1]).set(R::axis_2, s_.axes[2]);
    poses.cos = rope[R::cos], poses.sin = rope[R::sin];
    return poses;
  }
  Source embed_pose_vector() {
    using B = WanPoseVector;
    Block block = graph_.add<B>("embed.pose_vector");
    block.link(B::x, x_);
    blocks::Slots slots(file_, block, "embed.pose_vector");
    linear(slots, B::time_in, B::time_in_bias, "time_embedding.0", s_.width, s_.waves);
    linear(slots, B::time_out, B::time_out_bias, "time_embedding.2", s_.width, s_.width);
    return block[B::out];
  }
  void pass_poses(const std::string& path, const std::string& at, PoseStream& poses) {
    const Source mod = modulate(path, poses.shared, at + "modulation", 6),
                 text_kv = seen_.keys(path + ".text", poses.text, at + "cross_attn.", "", x_),
                 vision_kv =
                     seen_.keys(path + ".vision", poses.vision, at + "cross_attn.", "_img", x_);
    std::swap(cos_, poses.cos), std::swap(sin_, poses.sin);
    Block block =
        add_layer<WanPoseLayer>(path + ".block", at, poses.hidden, mod, text_kv, vision_kv);
    std::swap(cos_, poses.cos), std::swap(sin_, poses.sin);
    poses.hidden = block[WanLayer::out], poses.kept = block[WanPoseLayer::kept];
  }

  // What VACE's layers hand on, and how much of it counts.
  struct VaceStream {
    Source hidden, strength;
  };
  VaceStream begin_vace(const Source& hidden) {
    using B = WanVaceIn;
    const Source given = graph_.input("vace", kGiven);
    Block block = graph_.add<B>("embed.vace");
    block.link(B::vace, given);
    blocks::Slots slots(file_, block, "embed.vace");
    Part filter{names_.one("vace_patch_embedding.weight")};
    filter.frame = 1;
    slots.fill(B::weight, {filter}, {s_.width, s_.vace.channels, 1, kPatch, kPatch});
    vector_of(slots, B::bias, "vace_patch_embedding.bias", s_.width);
    linear(slots, B::before, B::before_bias, "vace_blocks.0.before_proj", s_.width, s_.width);
    Block start = graph_.add<WanVaceStart>("embed.vace_start");
    start.link(WanVaceStart::hidden, hidden)
        .link(WanVaceStart::hint, block[B::out])
        .link(WanVaceStart::vace, given);
    return {start[WanVaceStart::out], graph_.input("vace_strength", HEDDLE_INPUT_LOOP_INVARIANT)};
  }
  // hidden with the hints of VACE's layer k.
  Source add_vace(int k, VaceStream& vace, const Source& hidden, const Source& shared,
                  const Source& text) {
    using B = WanVaceAdd;
    const std::string path = "vace." + std::to_string(k),
                      at = "vace_blocks." + std::to_string(k) + ".";
    vace.hidden = add_whole_layer(path, at, vace.hidden, shared, text, {});
    Block block = graph_.add<B>(path + ".add");
    block.link(B::hidden, hidden).link(B::hint, vace.hidden).link(B::strength, vace.strength);
    blocks::Slots slots(file_, block, path + ".add");
    linear(slots, B::weight, B::bias, at + "after_proj", s_.width, s_.width);
    return block[B::out];
  }

  Source embed_vector(const Source& timestep) {
    using B = WanVector;
    Block block = graph_.add<B>("embed.vector");
    block.link(B::timestep, timestep).set(B::clean, s_.sound.injectors > 0);
    if (s_.tells_frames())
      block.link(B::frame_noise,
                 graph_.input("frame_noise", HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_OPTIONAL));
    blocks::Slots slots(file_, block, "embed.vector");
    linear(slots, B::time_in, B::time_in_bias, "time_embedding.0", s_.width, s_.waves);
    linear(slots, B::time_out, B::time_out_bias, "time_embedding.2", s_.width, s_.width);
    return block[B::out];
  }

  Source share_modulation(const std::string& path, const Source& vector) {
    using B = WanSharedModulation;
    Block block = graph_.add<B>(path);
    block.link(B::vector, vector);
    blocks::Slots slots(file_, block, path);
    linear(slots, B::weight, B::bias, "time_projection.1", 6 * s_.width, s_.width);
    return block[B::out];
  }

  Source modulate(const std::string& path, const Source& shared, const std::string& table,
                  std::int64_t pieces) {
    using B = WanModulation;
    Block block = graph_.add<B>(path + ".modulation");
    block.link(B::shared, shared);
    blocks::Slots(file_, block, path + ".modulation")
        .fill(B::table, names_.one(table), {1, pieces, s_.width});
    return block[B::out];
  }

  // reference: tokens of a frame before the video's, or behind it.
  void add_rope(const std::optional<Source>& reference) {
    using B = WanRope;
    if (s_.traits.is_causal) {
      causal_.emplace(s_, graph_, x_);
      std::tie(cos_, sin_) = causal_->rope();
      return;
    }
    Block block = graph_.add<B>("embed.rope");
    block.link(B::x, x_);
    if (reference) block.link(B::before, *reference);
    block.set(B::axis_0, s_.axes[0]).set(B::axis_1, s_.axes[1]).set(B::axis_2, s_.axes[2]);
    cos_ = block[B::cos], sin_ = block[B::sin];
  }

  // What is seen of a first frame and, by WanDancer, of the picture that is kept to.
  std::optional<Source> add_vision() {
    if (!s_.sees_pictures()) return {};
    constexpr std::uint32_t kMaybe = kGiven | HEDDLE_INPUT_OPTIONAL;
    const Source own = seen_.vision("embed.vision", graph_.input("vision", kMaybe));
    if (!dancer_) return own;
    const Source kept = seen_.vision("embed.reference_vision",
                                     graph_.input("reference_vision", kMaybe), "img_emb_refimage");
    return dancer_->join_vision(kept, own);
  }

  Source embed_latent() {
    if (dancer_) return dancer_->embed_latent(graph_.input("concat", kGiven));
    using B = WanLatentIn;
    Block block = graph_.add<B>("embed.latent");
    block.link(B::x, x_);
    if (s_.in_channels > s_.channels) block.link(B::concat, graph_.input("concat", kGiven));
    blocks::Slots slots(file_, block, "embed.latent");
    Part filter{names_.one("patch_embedding.weight")};
    filter.frame = 1;
    slots.fill(B::weight, {filter}, {s_.width, s_.in_channels, 1, kPatch, kPatch});
    vector_of(slots, B::bias, "patch_embedding.bias", s_.width);
    return block[B::out];
  }

  template <class Layer>
  Block add_layer(const std::string& path, const std::string& at, const Source& hidden,
                  const Source& mod, const Source& text_kv,
                  const std::optional<Source>& vision_kv) {
    using B = WanLayer;
    Block block = graph_.add<Layer>(path);
    block.link(B::hidden, hidden).link(B::mod, mod).link(B::text_kv, text_kv);
    if (vision_kv) block.link(B::vision_kv, *vision_kv);
    block.link(B::cos, cos_).link(B::sin, sin_).set(B::heads, s_.heads).set(B::eps, eps_);
    blocks::Slots slots(file_, block, path);
    const std::int64_t d = s_.width;
    if (s_.tells_frames()) slots.fill(B::table, names_.one(at + "modulation"), {1, 6, d});
    const auto both = [&](const char* kind, const Weight& slot, const Shape& shape) {
      slots.fill(
          slot,
          {{names_.one(at + "self_attn.q." + kind)}, {names_.one(at + "self_attn.k." + kind)}},
          shape);
    };
    both("weight", B::qk, {2 * d, d});
    both("bias", B::qk_bias, {2 * d});
    linear(slots, B::v, B::v_bias, at + "self_attn.v", d, d);
    vector_of(slots, B::q_norm, at + "self_attn.norm_q.weight", d);
    vector_of(slots, B::k_norm, at + "self_attn.norm_k.weight", d);
    linear(slots, B::proj, B::proj_bias, at + "self_attn.o", d, d);
    if (s_.traits.has_text_norm) {
      vector_of(slots, B::norm, at + "norm3.weight", d);
      vector_of(slots, B::norm_bias, at + "norm3.bias", d);
    }
    linear(slots, B::text_q, B::text_q_bias, at + "cross_attn.q", d, d);
    vector_of(slots, B::text_q_norm, at + "cross_attn.norm_q.weight", d);
    linear(slots, B::text_proj, B::text_proj_bias, at + "cross_attn.o", d, d);
    linear(slots, B::up, B::up_bias, at + "ffn.0", s_.mlp, d);
    linear(slots, B::down, B::down_bias, at + "ffn.2", d, s_.mlp);
    return block;
  }

  Source add_final(const Source& hidden, const Source& mod) {
    using B = WanFinal;
    Block block = graph_.add<B>("final.block");
    block.link(B::hidden, hidden).link(B::mod, mod).link(B::x, x_).set(B::eps, eps_);
    block.set(B::leads, s_.has_tokens_behind());
    blocks::Slots slots(file_, block, "final.block");
    linear(slots, B::weight, B::bias, "head.head", s_.channels * kPatchArea, s_.width);
    return block[B::out];
  }

  const Checkpoint& file_;
  const WanNames& names_;
  const WanSizes& s_;
  const double eps_;
  Blocks& graph_;
  const WanSeen seen_;
  Source x_, cos_, sin_;
  std::optional<WanCausal> causal_;
  std::optional<WanTalk> talk_;
  std::optional<WanHumo> humo_;
  std::optional<WanDancer> dancer_;
};

}  // namespace

int Wan::match(const Checkpoint& file, const Value&) { return WanNames::find(file) ? 100 : 0; }

void Wan::build(const Checkpoint& file, const Value& config, Blocks& graph) {
  const std::optional<WanNames> names = WanNames::find(file);
  if (!names) throw Error(HEDDLE_INVALID_ARGUMENT, file.path() + ": this is no model of Wan");
  const WanSizes sizes = read_wan_sizes(file, config, *names);
  const std::vector<ModelPatch> patches = model_patches(config);
  if (!patches.empty()) check_wan_patches(sizes, patches);
  WanBuilder(file, *names, sizes, config, graph).run(patches.empty() ? nullptr : &patches.front());
  add_wan_settings(sizes, graph);
  if (sizes.takes_patches()) add_patched_settings(config, sizes.width, graph);
  if (sizes.may_follow_poses())
    graph.setting("posing_model", (config.is(HEDDLE_KIND_RECORD) ? Record(config) : Record())
                                      .set(kFollowsPoses, value_of(true))
                                      .value());
}

}  // namespace heddle::denoisers
