#include "hunyuan.h"

#include <optional>

#include "dual_stream.h"
#include "flux_blocks.h"
#include "hunyuan_names.h"
#include "preview_factors.h"
#include "rotary_axes.h"
#include "wan_blocks.h"

namespace heddle::denoisers {
namespace {

FindModule modules_of(const HunyuanNames& names) {
  return {[&names](std::string_view module, const char* kind) {
    // As dual_stream.h asks.
    return names.top(module == "txt_in" ? "txt_in.input_embedder" : module, kind);
  }};
}
FindModule modules_of_refiner(const HunyuanNames& names, int index) {
  return {[&names, index](std::string_view module, const char* kind) {
    return names.in_refiner(index, module, kind);
  }};
}
FindModule modules_of_double(const HunyuanNames& names, int index) {
  return {[&names, index](std::string_view module, const char* kind) {
    return names.in_double(index, module, kind);
  }};
}
FindModule modules_of_single(const HunyuanNames& names, int index) {
  return {[&names, index](std::string_view module, const char* kind) {
    return names.in_single(index, module, kind);
  }};
}

struct HunyuanSizes {
  StreamSizes streams;
  std::int64_t in_channels, channels, pooled, glyphs, glyph_hidden, vision;
  int singles;
  bool is_later;  // 1.5
  bool guided;
  bool has_target;  // two timesteps

  // Beside the point of super resolution lie two latents, each with a mask.
  bool is_sharpening() const { return in_channels == 3 * channels + 2; }
  // Tokens of a picture beside those of the video.
  bool reads_reference() const { return !is_later && in_channels == channels; }
};

HunyuanSizes read_sizes(const Checkpoint& file, const Value& config, const HunyuanNames& names) {
  const auto size = [&](const std::vector<Part>& parts, std::uint32_t axis) {
    return file.size(parts.front().tensor, axis);
  };
  HunyuanSizes s{};
  StreamSizes& d = s.streams;
  const std::vector<Part> first = names.top("img_in.proj", "weight");
  d.hidden = size(first, 0);
  s.in_channels = size(first, 1);
  d.kind.patch = size(first, 4);
  if (d.kind.patch < 1 || d.kind.patch > 2 || size(first, 2) != 1 || size(first, 3) != d.kind.patch)
    throw Error(HEDDLE_UNSUPPORTED,
                file.path() + ": '" + first.front().tensor + "' reads patches of " +
                    std::to_string(size(first, 2)) + " x " + std::to_string(size(first, 3)) +
                    " x " + std::to_string(d.kind.patch) +
                    "; models of 1 x 1 x 1 (1.5) and 1 x 2 x 2 (1.0) are supported.");
  const std::int64_t area = d.kind.patch * d.kind.patch;
  d.out_width = size(names.top("final_layer.linear", "weight"), 0);
  s.channels = d.out_width / area;
  d.in_width = s.in_channels * area;
  if (s.channels < 1 || s.channels * area != d.out_width || s.channels > s.in_channels)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                file.path() + ": " + std::to_string(d.out_width) +
                    " numbers of a token come out, " + std::to_string(s.in_channels) +
                    " channels go in. The file is damaged or of another model.");
  d.context_width = size(names.top("txt_in.input_embedder", "weight"), 1);
  d.time_width = size(names.top("time_in.in_layer", "weight"), 1);
  d.doubles = names.doubles();
  d.expose_blocks = config.get<bool>("expose_blocks", false);
  d.head_size = size(names.in_double(0, "img_attn.norm.query_norm", "weight"), 0);
  if (d.head_size < 8 || d.hidden % d.head_size != 0)
    throw Error(HEDDLE_INVALID_ARGUMENT, file.path() + ": a width of " + std::to_string(d.hidden) +
                                             " is no multiple of heads of " +
                                             std::to_string(d.head_size) +
                                             " numbers. The file is damaged or of another model.");
  d.heads = d.hidden / d.head_size;
  // Rows and columns turn 7/16 of a head each, in pairs; frames what is left.
  const std::int64_t side = d.head_size * 7 / 32 * 2;
  const std::array<std::int64_t, 3> axes =
      rotary_axes(file, config, d.head_size, {d.head_size - 2 * side, side, side});
  d.axes = {axes.begin(), axes.end()};
  s.singles = names.singles();
  s.is_later = names.has_top("cond_type_embedding");
  s.has_target = names.has_top("time_r_in.in_layer");
  if (s.has_target && !s.is_later)
    throw Error(HEDDLE_UNSUPPORTED,
                file.path() +
                    ": this is a model of two timesteps (MeanFlow) that is none of HunyuanVideo "
                    "1.5, which is not supported.");
  if (s.is_later) {
    s.glyphs = size(names.top("byt5_in.fc1", "weight"), 1);
    s.glyph_hidden = size(names.top("byt5_in.fc1", "weight"), 0);
    s.vision = size(names.top("vision_in.proj.1", "weight"), 1);
  } else {
    s.pooled = size(names.top("vector_in.in_layer", "weight"), 1);
    s.guided = names.has_top("guidance_in.in_layer");
  }
  return s;
}

// Builds the graph of one file.
class HunyuanBuilder {
 public:
  HunyuanBuilder(const Checkpoint& file, const HunyuanNames& names, const HunyuanSizes& sizes,
                 Blocks& graph)
      : file_(file),
        names_(names),
        s_(sizes),
        d_(sizes.streams),
        graph_(graph),
        top_(modules_of(names)),
        streams_(file, sizes.streams, graph, top_) {}

  void run() {
    x_ = graph_.input("x", HEDDLE_INPUT_PER_STEP | HEDDLE_INPUT_BATCH);
    timestep_ = graph_.input("timestep", HEDDLE_INPUT_PRECOMPUTED);
    context_ = graph_.input("context", kGivenToHunyuan);
    if (s_.is_later) {
      byt5_ = graph_.input("byt5", kGivenToHunyuan | HEDDLE_INPUT_OPTIONAL);
      vision_ = graph_.input("vision", kGivenToHunyuan | HEDDLE_INPUT_OPTIONAL);
    }
    std::optional<Source> first;
    if (!s_.is_later)
      first = graph_.input("first_timestep", HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_OPTIONAL);
    const Source vector = embed_vector(first);
    if (s_.reads_reference())
      reference_ = graph_.input("reference", kGivenToHunyuan | HEDDLE_INPUT_OPTIONAL);
    AttentionInputs attention = add_rope();
    if (first) attention.reference_timestep = first, attention.first = x_;
    Source txt = refine(streams_.embed_text(context_, x_, Source{})), img = embed_latent();
    if (s_.is_later) txt = join_texts(txt);
    AttentionInputs behind = attention;  // of blocks that see where the video ends
    if (s_.reads_reference()) {
      behind.references = embed_reference(*first);
      img = join_reference(img, *behind.references);
    }
    for (int i = 0; i < d_.doubles; ++i)
      streams_.add_double(i, modules_of_double(names_, i), vector, attention, img, txt);
    if (s_.singles > 0) img = add_singles(vector, behind, img, txt);
    graph_.output("out", streams_.add_final(vector, img, x_, behind));
  }

 private:
  static constexpr std::uint32_t kGivenToHunyuan = HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_BATCH;

  void linear(blocks::Slots& slots, const Weight& matrix, const Weight& bias, const char* module,
              std::int64_t out, std::int64_t in) const {
    DualStreams::linear(slots, matrix, bias, top_(module), out, in);
  }
  // A norm's weight and bias.
  static void norm(blocks::Slots& slots, const Weight& weight, const Weight& bias,
                   const ModuleParts& module, std::int64_t width) {
    slots.fill(weight, module("weight"), {width});
    slots.fill(bias, module("bias"), {width});
  }

  Source embed_vector(const std::optional<Source>& first) {
    using B = HunyuanVector;
    Block block = graph_.add<B>("embed.vector");
    block.link(B::timestep, timestep_);
    if (first) block.link(B::first_timestep, *first);
    blocks::Slots slots(file_, block, "embed.vector");
    linear(slots, B::time_in, B::time_in_bias, "time_in.in_layer", d_.hidden, d_.time_width);
    linear(slots, B::time_out, B::time_out_bias, "time_in.out_layer", d_.hidden, d_.hidden);
    if (s_.has_target) {
      block.link(B::target, graph_.input("target_timestep", HEDDLE_INPUT_PRECOMPUTED));
      linear(slots, B::target_in, B::target_in_bias, "time_r_in.in_layer", d_.hidden,
             d_.time_width);
      linear(slots, B::target_out, B::target_out_bias, "time_r_in.out_layer", d_.hidden, d_.hidden);
    }
    if (s_.is_later) return block[B::out];
    block.link(B::y, graph_.input("y", kGivenToHunyuan));
    linear(slots, B::text_in, B::text_in_bias, "vector_in.in_layer", d_.hidden, s_.pooled);
    linear(slots, B::text_out, B::text_out_bias, "vector_in.out_layer", d_.hidden, d_.hidden);
    if (!s_.guided) return block[B::out];
    block.link(B::guidance, graph_.input("guidance", kGivenToHunyuan | HEDDLE_INPUT_OPTIONAL));
    linear(slots, B::guidance_in, B::guidance_in_bias, "guidance_in.in_layer", d_.hidden,
           d_.time_width);
    linear(slots, B::guidance_out, B::guidance_out_bias, "guidance_in.out_layer", d_.hidden,
           d_.hidden);
    return block[B::out];
  }

  AttentionInputs add_rope() {
    using B = HunyuanRope;
    Block block = graph_.add<B>("embed.rope");
    block.link(B::x, x_).link(B::context, context_);
    if (s_.is_later) block.link(B::byt5, byt5_).link(B::vision, vision_);
    if (reference_) block.link(B::reference, *reference_);
    block.set(B::patch, d_.kind.patch);
    block.set(B::axis_0, d_.axes[0]).set(B::axis_1, d_.axes[1]).set(B::axis_2, d_.axes[2]);
    AttentionInputs attention;
    attention.cos = block[B::cos];
    attention.sin = block[B::sin];
    attention.singles = s_.singles;
    return attention;
  }

  Source embed_latent() {
    using B = WanLatentIn;
    Block block = graph_.add<B>("embed.latent");
    block.link(B::x, x_).set(B::patch, d_.kind.patch);
    if (s_.in_channels > s_.channels)
      block.link(B::concat, graph_.input("concat", kGivenToHunyuan));
    blocks::Slots slots(file_, block, "embed.latent");
    Part filter = top_("img_in.proj")("weight").front();
    filter.frame = 1;
    slots.fill(B::weight, {filter}, {d_.hidden, s_.in_channels, 1, d_.kind.patch, d_.kind.patch});
    slots.fill(B::bias, top_("img_in.proj")("bias"), {d_.hidden});
    return block[B::out];
  }

  // By the video's own first layer.
  Source embed_reference(const Source& first) {
    using B = HunyuanReferenceIn;
    Block block = graph_.add<B>("embed.reference");
    block.link(B::reference, *reference_).link(B::first_timestep, first);
    block.set(B::patch, d_.kind.patch);
    blocks::Slots slots(file_, block, "embed.reference");
    Part filter = top_("img_in.proj")("weight").front();
    filter.frame = 1;
    slots.fill(B::weight, {filter}, {d_.hidden, s_.in_channels, 1, d_.kind.patch, d_.kind.patch});
    slots.fill(B::bias, top_("img_in.proj")("bias"), {d_.hidden});
    return block[B::out];
  }
  Source join_reference(const Source& img, const Source& reference) {
    using B = HunyuanReferenceJoin;
    Block block = graph_.add<B>("embed.reference_join");
    block.link(B::img, img).link(B::reference, reference);
    return block[B::out];
  }

  // The language model's text, looked at once more: what it becomes depends on the timestep.
  Source refine(Source text) {
    using V = HunyuanTextVector;
    using B = HunyuanRefiner;
    Block told = graph_.add<V>("embed.text_vector");
    told.link(V::timestep, timestep_).link(V::context, context_);
    blocks::Slots of_vector(file_, told, "embed.text_vector");
    const std::int64_t d = d_.hidden;
    linear(of_vector, V::time_in, V::time_in_bias, "txt_in.t_embedder.in_layer", d, d_.time_width);
    linear(of_vector, V::time_out, V::time_out_bias, "txt_in.t_embedder.out_layer", d, d);
    linear(of_vector, V::text_in, V::text_in_bias, "txt_in.c_embedder.in_layer", d,
           d_.context_width);
    linear(of_vector, V::text_out, V::text_out_bias, "txt_in.c_embedder.out_layer", d, d);
    for (int i = 0; i < names_.refiners(); ++i) {
      const std::string path = "refiner." + std::to_string(i);
      const FindModule find = modules_of_refiner(names_, i);
      const Source mod =
          streams_.modulation(path + ".modulation", told[V::out], find("adaLN_modulation.1"), 2);
      Block block = graph_.add<B>(path + ".block");
      block.link(B::hidden, text).link(B::mod, mod).link(B::x, x_).set(B::heads, d_.heads);
      blocks::Slots slots(file_, block, path + ".block");
      const std::int64_t mlp = file_.size(find("mlp.0")("weight").front().tensor, 0);
      norm(slots, B::norm1, B::norm1_bias, find("norm1"), d);
      DualStreams::linear(slots, B::qkv, B::qkv_bias, find("self_attn.qkv"), 3 * d, d);
      DualStreams::linear(slots, B::proj, B::proj_bias, find("self_attn.proj"), d, d);
      norm(slots, B::norm2, B::norm2_bias, find("norm2"), d);
      DualStreams::linear(slots, B::up, B::up_bias, find("mlp.0"), mlp, d);
      DualStreams::linear(slots, B::down, B::down_bias, find("mlp.2"), d, mlp);
      text = block[B::out];
    }
    return text;
  }

  Source embed_glyphs() {
    using B = HunyuanGlyphIn;
    Block block = graph_.add<B>("embed.glyphs");
    block.link(B::byt5, byt5_);
    blocks::Slots slots(file_, block, "embed.glyphs");
    norm(slots, B::norm, B::norm_bias, top_("byt5_in.layernorm"), s_.glyphs);
    linear(slots, B::in, B::in_bias, "byt5_in.fc1", s_.glyph_hidden, s_.glyphs);
    linear(slots, B::middle, B::middle_bias, "byt5_in.fc2", s_.glyph_hidden, s_.glyph_hidden);
    linear(slots, B::last, B::last_bias, "byt5_in.fc3", d_.hidden, s_.glyph_hidden);
    return block[B::out];
  }

  Source embed_vision() {
    using B = WanVisionIn;
    Block block = graph_.add<B>("embed.vision");
    block.link(B::vision, vision_);
    blocks::Slots slots(file_, block, "embed.vision");
    norm(slots, B::norm1, B::norm1_bias, top_("vision_in.proj.0"), s_.vision);
    linear(slots, B::in, B::in_bias, "vision_in.proj.1", s_.vision, s_.vision);
    linear(slots, B::last, B::last_bias, "vision_in.proj.3", d_.hidden, s_.vision);
    norm(slots, B::norm2, B::norm2_bias, top_("vision_in.proj.4"), d_.hidden);
    return block[B::out];
  }

  Source join_texts(const Source& text) {
    using B = HunyuanJoin;
    const Source glyphs = embed_glyphs(), vision = embed_vision();
    Block block = graph_.add<B>("embed.join");
    block.link(B::vision, vision).link(B::glyphs, glyphs).link(B::text, text);
    blocks::Slots(file_, block, "embed.join")
        .fill(B::kinds, top_("cond_type_embedding")("weight"), {3, d_.hidden});
    return block[B::out];
  }

  // Both streams in one, text first.
  Source add_singles(const Source& vector, const AttentionInputs& attention, const Source& img,
                     const Source& txt) {
    Block join = graph_.add<FluxJoin>("join");
    join.link(FluxJoin::txt, txt).link(FluxJoin::img, img);
    Source hidden = join[FluxJoin::out];
    for (int i = 0; i < s_.singles; ++i) {
      const FindModule find = modules_of_single(names_, i);
      const Source modulation = streams_.modulation("single." + std::to_string(i) + ".modulation",
                                                    vector, find("modulation.lin"), 3);
      hidden = streams_.add_single(i, find, modulation, attention, hidden, x_);
    }
    return hidden;
  }

  const Checkpoint& file_;
  const HunyuanNames& names_;
  const HunyuanSizes& s_;
  const StreamSizes& d_;
  Blocks& graph_;
  const FindModule top_;
  const DualStreams streams_;
  Source x_, timestep_, context_, byt5_, vision_;
  std::optional<Source> reference_;
};

// Of the latents of the published autoencoders: ComfyUI's constants, which are their configs'.
constexpr double kLatentScale10 = 0.476986, kLatentScale15 = 1.03682;

void add_hunyuan_settings(const HunyuanSizes& s, Blocks& graph) {
  graph.setting("family", "hunyuan-video");
  graph.setting("latent_channels", s.channels);
  graph.setting("latent_downscale", std::int64_t{s.is_later ? 16 : 8});
  add_preview_factors(s.is_later ? LatentKind::hunyuan15 : LatentKind::hunyuan, s.channels, graph);
  graph.setting("latent_frames", true);
  graph.setting("mask_clean", true);
  graph.setting("latent_scale", s.is_later ? kLatentScale15 : kLatentScale10);
  graph.setting("latent_shift", 0.0);
  graph.setting("patch", s.streams.kind.patch);
  graph.setting("guidance_embedded", s.guided);
  graph.setting("context_width", s.streams.context_width);
  if (s.is_sharpening()) {
    // They are not scaled, and the second latent is mixed with noise.
    graph.setting("concat_channels", s.in_channels - s.channels);
    graph.setting("concat_masks", std::int64_t{0});
    graph.setting("concat_raw", true);
    graph.setting("concat_noised", s.channels + 1);
  } else if (s.in_channels > s.channels) {
    // A latent and a mask of one number a cell, 1 where it is given.
    graph.setting("concat_channels", s.in_channels - s.channels);
    graph.setting("concat_masks", std::int64_t{1});
    graph.setting("concat_mask_last", true);
  }
  if (s.reads_reference())
    for (const char* name : {"reference_frame", "reference_video"}) graph.setting(name, true);
  if (s.is_later) {
    graph.setting("vision_width", s.vision);
    graph.setting("vision_states", "last_hidden");
    graph.setting("byt5_width", s.glyphs);
    graph.setting("text_encoder",
                  "Qwen2.5-VL 7B and byT5 small (DualCLIPLoader, type hunyuan_video_15)");
  } else {
    graph.setting("pooled_width", s.pooled);
    graph.setting("default_guidance", 6.0);
    graph.setting("text_encoder", "CLIP-L and Llama 3 (DualCLIPLoader, type hunyuan_video)");
  }
  // How noise levels are spaced when no node says otherwise, as ComfyUI does. `sampling`: the
  // output is the velocity of a straight flow.
  graph.setting("sampling", "flow");
  graph.setting("noise_table", "discrete_flow");
  graph.setting("noise_shift", s.is_sharpening() ? 2.0 : 7.0);
  graph.setting("noise_multiplier", 1000.0);
}

}  // namespace

int Hunyuan::match(const Checkpoint& file, const Value&) {
  return HunyuanNames::find(file) ? 100 : 0;
}

void Hunyuan::build(const Checkpoint& file, const Value& config, Blocks& graph) {
  const std::optional<HunyuanNames> names = HunyuanNames::find(file);
  if (!names)
    throw Error(HEDDLE_INVALID_ARGUMENT, file.path() + ": this is no model of HunyuanVideo");
  const HunyuanSizes sizes = read_sizes(file, config, *names);
  HunyuanBuilder(file, *names, sizes, graph).run();
  add_hunyuan_settings(sizes, graph);
}

}  // namespace heddle::denoisers
