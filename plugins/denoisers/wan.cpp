#include "wan.h"

#include <optional>

#include "patches.h"
#include "plugins/blocks/slots.h"
#include "preview_factors.h"
#include "rotary_axes.h"
#include "wan_latent_settings.h"
#include "wan_names.h"
#include "wan_vace_blocks.h"

namespace heddle::denoisers {
namespace {

constexpr std::int64_t kChannelsOf22 = 48;  // of the latent of Wan 2.2's 5B

// Of the layers of VACE beside the model's own: none where it has none.
struct VaceSizes {
  std::int64_t channels;
  int layers;
};

struct WanSizes {
  std::int64_t width, head, heads, mlp, waves, text, vision, in_channels, channels;
  int layers;
  VaceSizes vace;
  std::array<std::int64_t, 3> axes;
  bool sees_pictures, has_positions, has_text_norm;

  // How noisy each frame is.
  bool tells_frames() const { return channels == kChannelsOf22; }
};

// What a file has besides, by its original name, and what that makes of it.
struct Kind {
  const char *tensor, *name;
};
constexpr Kind kOthers[] = {
    {"control_adapter.conv.weight", "Wan with a camera"},
    {"casual_audio_encoder.weights", "Wan S2V"},
    {"audio_proj.audio_proj_glob_1.layer.weight", "HuMo"},
    {"face_adapter.fuser_blocks.0.k_norm.weight", "Wan Animate"},
    {"ref_conv.weight", "Wan Fun control with a reference picture"},
};

void refuse_others(const Checkpoint& file, const WanNames& names) {
  for (const Kind& kind : kOthers)
    if (names.has(kind.tensor))
      throw Error(HEDDLE_UNSUPPORTED,
                  file.path() + ": this is " + kind.name +
                      ", which is not supported. Use a model of Wan 2.1 or 2.2 for text to video "
                      "or picture to video.");
}

WanSizes read_sizes(const Checkpoint& file, const Value& config, const WanNames& names) {
  const auto size = [&](const char* name, std::uint32_t axis) {
    return file.size(names.one(name), axis);
  };
  WanSizes s{};
  s.width = size("patch_embedding.weight", 0);
  s.in_channels = size("patch_embedding.weight", 1);
  s.channels = size("head.head.weight", 0) / kPatchArea;
  s.mlp = size("blocks.0.ffn.0.weight", 0);
  s.waves = size("time_embedding.0.weight", 1);
  s.text = size("text_embedding.0.weight", 1);
  s.layers = names.layers();
  s.vace.layers = names.vace_layers();
  if (s.vace.layers > s.layers)
    throw Error(HEDDLE_INVALID_ARGUMENT, file.path() + ": " + std::to_string(s.vace.layers) +
                                             " layers of VACE beside " + std::to_string(s.layers) +
                                             ". The file is damaged or of another model.");
  if (s.vace.layers > 0) s.vace.channels = size("vace_patch_embedding.weight", 1);
  s.sees_pictures = names.has("img_emb.proj.1.weight");
  if (s.sees_pictures) s.vision = size("img_emb.proj.1.weight", 1);
  s.has_positions = names.has("img_emb.emb_pos");
  s.has_text_norm = names.has("blocks.0.norm3.weight");
  constexpr std::int64_t kHead = 128;
  s.head = config.get<std::int64_t>("attention_head_dim", kHead);
  if (s.head < 6 || s.width % s.head != 0)
    throw Error(HEDDLE_INVALID_ARGUMENT, file.path() + ": a width of " + std::to_string(s.width) +
                                             " is no multiple of heads of " +
                                             std::to_string(s.head) +
                                             " numbers. The file is damaged or of another model.");
  s.heads = s.width / s.head;
  // Rows and columns turn a third of a head each, in pairs; frames what is left.
  const std::int64_t side = s.head / 6 * 2;
  s.axes = rotary_axes(file, config, s.head, {s.head - 2 * side, side, side});
  return s;
}

// Builds the graph of one file.
class WanBuilder {
 public:
  WanBuilder(const Checkpoint& file, const WanNames& names, const WanSizes& sizes,
             const Value& config, Blocks& graph)
      : file_(file),
        names_(names),
        s_(sizes),
        eps_(config.get<double>("eps", 1e-6)),
        graph_(graph) {}

  void run() {
    x_ = graph_.input("x", HEDDLE_INPUT_PER_STEP | HEDDLE_INPUT_BATCH);
    const Source timestep = graph_.input("timestep", HEDDLE_INPUT_PRECOMPUTED);
    const Source vector = embed_vector(timestep), shared = share_modulation(vector);
    add_rope();
    const Source text = embed_text(graph_.input("context", kGiven));
    std::optional<Source> vision;
    if (s_.sees_pictures)
      vision = embed_vision(graph_.input("vision", kGiven | HEDDLE_INPUT_OPTIONAL));
    Source hidden = embed_latent();
    std::optional<VaceStream> vace;
    if (s_.vace.layers > 0) vace = begin_vace(hidden);
    for (int i = 0; i < s_.layers; ++i) {
      const std::string number = std::to_string(i);
      hidden = add_whole_layer("layer." + number, "blocks." + number + ".", hidden, shared, text,
                               vision);
      // The layers that hints are added behind are spread evenly.
      const int step = vace ? s_.layers / s_.vace.layers : 1;
      if (vace && i % step == 0 && i / step < s_.vace.layers)
        hidden = add_vace(i / step, *vace, hidden, shared, text);
    }
    graph_.output("out", add_final(hidden, modulate("final", vector, "head.modulation", 2)));
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

  // A layer with what it is modulated by and what it looks at.
  Source add_whole_layer(const std::string& path, const std::string& at, const Source& hidden,
                         const Source& shared, const Source& text,
                         const std::optional<Source>& vision) {
    const Source mod = s_.tells_frames() ? shared : modulate(path, shared, at + "modulation", 6);
    const Source text_kv = add_keys(path + ".text", text, at + "cross_attn.", "");
    std::optional<Source> vision_kv;
    if (vision) vision_kv = add_keys(path + ".vision", *vision, at + "cross_attn.", "_img");
    return add_layer(path + ".block", at, hidden, mod, text_kv, vision_kv);
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
    block.link(B::timestep, timestep);
    if (s_.tells_frames())
      block.link(B::frame_noise,
                 graph_.input("frame_noise", HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_OPTIONAL));
    blocks::Slots slots(file_, block, "embed.vector");
    linear(slots, B::time_in, B::time_in_bias, "time_embedding.0", s_.width, s_.waves);
    linear(slots, B::time_out, B::time_out_bias, "time_embedding.2", s_.width, s_.width);
    return block[B::out];
  }

  Source share_modulation(const Source& vector) {
    using B = WanSharedModulation;
    Block block = graph_.add<B>("embed.modulation");
    block.link(B::vector, vector);
    blocks::Slots slots(file_, block, "embed.modulation");
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

  void add_rope() {
    using B = WanRope;
    Block block = graph_.add<B>("embed.rope");
    block.link(B::x, x_);
    block.set(B::axis_0, s_.axes[0]).set(B::axis_1, s_.axes[1]).set(B::axis_2, s_.axes[2]);
    cos_ = block[B::cos], sin_ = block[B::sin];
  }

  Source embed_text(const Source& context) {
    using B = WanTextIn;
    Block block = graph_.add<B>("embed.text");
    block.link(B::context, context);
    blocks::Slots slots(file_, block, "embed.text");
    linear(slots, B::in, B::in_bias, "text_embedding.0", s_.width, s_.text);
    linear(slots, B::last, B::last_bias, "text_embedding.2", s_.width, s_.width);
    return block[B::out];
  }

  Source embed_vision(const Source& vision) {
    using B = WanVisionIn;
    Block block = graph_.add<B>("embed.vision");
    block.link(B::vision, vision);
    blocks::Slots slots(file_, block, "embed.vision");
    vector_of(slots, B::norm1, "img_emb.proj.0.weight", s_.vision);
    vector_of(slots, B::norm1_bias, "img_emb.proj.0.bias", s_.vision);
    linear(slots, B::in, B::in_bias, "img_emb.proj.1", s_.vision, s_.vision);
    linear(slots, B::last, B::last_bias, "img_emb.proj.3", s_.width, s_.vision);
    vector_of(slots, B::norm2, "img_emb.proj.4.weight", s_.width);
    vector_of(slots, B::norm2_bias, "img_emb.proj.4.bias", s_.width);
    if (s_.has_positions) {
      const std::string tensor = names_.one("img_emb.emb_pos");
      slots.fill(B::positions, tensor, {1, file_.size(tensor, 1), s_.vision});
    }
    return block[B::out];
  }

  Source embed_latent() {
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

  // tail: of the names of a picture's.
  Source add_keys(const std::string& path, const Source& seen, const std::string& at,
                  const std::string& tail) {
    using B = WanKeys;
    Block block = graph_.add<B>(path);
    block.link(B::seen, seen).link(B::x, x_).set(B::eps, eps_);
    blocks::Slots slots(file_, block, path);
    linear(slots, B::k, B::k_bias, at + "k" + tail, s_.width, s_.width);
    linear(slots, B::v, B::v_bias, at + "v" + tail, s_.width, s_.width);
    vector_of(slots, B::norm, at + "norm_k" + tail + ".weight", s_.width);
    return block[B::out];
  }

  Source add_layer(const std::string& path, const std::string& at, const Source& hidden,
                   const Source& mod, const Source& text_kv,
                   const std::optional<Source>& vision_kv) {
    using B = WanLayer;
    Block block = graph_.add<B>(path);
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
    if (s_.has_text_norm) {
      vector_of(slots, B::norm, at + "norm3.weight", d);
      vector_of(slots, B::norm_bias, at + "norm3.bias", d);
    }
    linear(slots, B::text_q, B::text_q_bias, at + "cross_attn.q", d, d);
    vector_of(slots, B::text_q_norm, at + "cross_attn.norm_q.weight", d);
    linear(slots, B::text_proj, B::text_proj_bias, at + "cross_attn.o", d, d);
    linear(slots, B::up, B::up_bias, at + "ffn.0", s_.mlp, d);
    linear(slots, B::down, B::down_bias, at + "ffn.2", d, s_.mlp);
    return block[B::out];
  }

  Source add_final(const Source& hidden, const Source& mod) {
    using B = WanFinal;
    Block block = graph_.add<B>("final.block");
    block.link(B::hidden, hidden).link(B::mod, mod).link(B::x, x_).set(B::eps, eps_);
    blocks::Slots slots(file_, block, "final.block");
    linear(slots, B::weight, B::bias, "head.head", s_.channels * kPatchArea, s_.width);
    return block[B::out];
  }

  const Checkpoint& file_;
  const WanNames& names_;
  const WanSizes& s_;
  const double eps_;
  Blocks& graph_;
  Source x_, cos_, sin_;
};

void add_settings(const WanSizes& s, Blocks& graph) {
  graph.setting("family", "wan");
  graph.setting("latent_channels", s.channels);
  graph.setting("latent_downscale", std::int64_t{s.channels == kChannelsOf22 ? 16 : 8});
  graph.setting("latent_frames", true);
  add_preview_factors(LatentKind::wan21, s.channels, graph);
  graph.setting("patch", kPatch);
  graph.setting("guidance_embedded", false);
  graph.setting("context_width", s.text);
  if (s.in_channels > s.channels) graph.setting("concat_channels", s.in_channels - s.channels);
  if (s.tells_frames()) {
    graph.setting("mask_clean", true);
    graph.setting("frame_noise_is_mean", true);
  }
  if (s.sees_pictures) graph.setting("vision_width", s.vision);
  if (s.vace.channels > 0) graph.setting("vace_channels", s.vace.channels);
  graph.setting("text_encoder", "UMT5-XXL (CLIPLoader, type wan)");
  add_wan_latents(s.channels, graph);
  // How noise levels are spaced when no node says otherwise, as ComfyUI does. `sampling`: the
  // output is the velocity of a straight flow.
  graph.setting("sampling", "flow");
  graph.setting("noise_table", "discrete_flow");
  graph.setting("noise_shift", 8.0);
  graph.setting("noise_multiplier", 1000.0);
}

}  // namespace

int Wan::match(const Checkpoint& file, const Value&) { return WanNames::find(file) ? 100 : 0; }

void Wan::build(const Checkpoint& file, const Value& config, Blocks& graph) {
  const std::optional<WanNames> names = WanNames::find(file);
  if (!names) throw Error(HEDDLE_INVALID_ARGUMENT, file.path() + ": this is no model of Wan");
  refuse_others(file, *names);
  const WanSizes sizes = read_sizes(file, config, *names);
  WanBuilder(file, *names, sizes, config, graph).run();
  add_settings(sizes, graph);
}

}  // namespace heddle::denoisers
