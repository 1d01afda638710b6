#include "ltxv.h"

#include <array>
#include <optional>

#include "ltxv_guides.h"
#include "ltxv_names.h"
#include "plugins/blocks/slots.h"
#include "preview_factors.h"
#include "wan_blocks.h"

namespace heddle::denoisers {
namespace {

struct LtxvSizes {
  std::int64_t width, heads, mlp, waves, text, channels;
  int layers;
};

struct LtxvOptions {
  std::int64_t heads = 32;
  bool is_causal = false;
  double eps = 1e-6, theta = 10000;
  std::array<double, 3> most{20, 2048, 2048};
};

void refuse_other_ltx(const Checkpoint& file, const LtxvNames& names) {
  if (names.has("caption_projection.linear_1.weight")) return;
  throw Error(HEDDLE_UNSUPPORTED,
              file.path() +
                  ": this is a later model of LTX for videos without sound, which is not "
                  "supported. Use one of LTX-Video 0.9, such as ltx-video-2b-v0.9.safetensors, or "
                  "of LTX 2.");
}

// What the file's metadata tell of the transformer, or nothing.
Value config_inside(const Checkpoint& file) {
  const std::optional<std::string> text = file.meta("config");
  if (!text) return {};
  heddle_value* out = nullptr;
  const std::string name = file.path() + ", metadata 'config'";
  check(service<heddle_json_service>().parse(services.host, {text->data(), text->size()},
                                             name.c_str(), &out));
  return Value::adopt(out).field("transformer");
}

LtxvOptions read_options(const Checkpoint& file, const Value& config) {
  const Value inside = config_inside(file);
  const auto telling = [&](const char* key) { return config.has(key) ? config : inside; };
  const auto told = [&](const char* key, auto otherwise) {
    return telling(key).get<decltype(otherwise)>(key, otherwise);
  };
  LtxvOptions o;
  o.heads = told("num_attention_heads", o.heads);
  o.is_causal = told("causal_temporal_positioning", o.is_causal);
  o.eps = told("norm_eps", o.eps);
  o.theta = told("positional_embedding_theta", o.theta);
  constexpr const char* kMost = "positional_embedding_max_pos";
  const Value most = telling(kMost).field(kMost);
  for (std::uint32_t i = 0; i < o.most.size() && i < most.count(); ++i)
    o.most[i] = most.item(i).as<double>();
  for (const double value : {o.eps, o.theta, o.most[0], o.most[1], o.most[2]})
    if (!(value > 0))
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  file.path() +
                      ": of norm_eps, positional_embedding_theta and "
                      "positional_embedding_max_pos in the model's config one is " +
                      std::to_string(value) + ". All have to be above 0.");
  return o;
}

LtxvSizes read_ltxv_sizes(const Checkpoint& file, const LtxvNames& names, std::int64_t heads) {
  const auto size = [&](const char* name, std::uint32_t axis) {
    return file.size(names.one(name), axis);
  };
  LtxvSizes s{};
  s.width = size("patchify_proj.weight", 0);
  s.channels = size("patchify_proj.weight", 1);
  s.mlp = size("transformer_blocks.0.ff.net.0.proj.weight", 0);
  s.waves = size("adaln_single.emb.timestep_embedder.linear_1.weight", 1);
  s.text = size("caption_projection.linear_1.weight", 1);
  s.layers = names.layers();
  s.heads = heads;
  if (heads < 1 || s.width % heads != 0 || s.width < 6 || s.width % 2 != 0)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                file.path() + ": a width of " + std::to_string(s.width) + " does not divide into " +
                    std::to_string(heads) +
                    " heads ('num_attention_heads'). The file is damaged or of another model.");
  return s;
}

// Builds the graph of one file.
class LtxvBuilder {
 public:
  LtxvBuilder(const Checkpoint& file, const LtxvNames& names, const LtxvSizes& sizes,
              const LtxvOptions& options, Blocks& graph)
      : file_(file), names_(names), s_(sizes), o_(options), graph_(graph) {}

  void run() {
    x_ = graph_.input("x", HEDDLE_INPUT_PER_STEP | HEDDLE_INPUT_BATCH);
    const Source timestep = graph_.input("timestep", HEDDLE_INPUT_PRECOMPUTED);
    const Source noise =
        graph_.input("frame_noise", HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_OPTIONAL);
    const Source vector = embed_vector(timestep, noise), shared = share_modulation(vector);
    const Source text =
        embed_text(graph_.input("context", HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_BATCH));
    guides_ = guide_inputs(graph_);
    add_rope(graph_.input("frame_time", HEDDLE_INPUT_LOOP_INVARIANT));
    Source hidden = embed_latent();
    for (int i = 0; i < s_.layers; ++i) {
      const std::string path = "layer." + std::to_string(i),
                        at = "transformer_blocks." + std::to_string(i) + ".";
      const Source mod = modulate(path + ".modulation", shared, at + "scale_shift_table", 6);
      const Source text_kv = add_keys(path + ".text", text, at + "attn2.");
      hidden = add_layer(path + ".block", at, hidden, mod, text_kv);
    }
    graph_.output("out",
                  add_final(hidden, modulate("final.modulation", vector, "scale_shift_table", 2)));
  }

 private:
  void linear(blocks::Slots& slots, const Weight& matrix, const Weight& bias,
              const std::string& module, std::int64_t out, std::int64_t in) const {
    slots.fill(matrix, names_.one(module + ".weight"), {out, in});
    slots.fill(bias, names_.one(module + ".bias"), {out});
  }

  Source embed_vector(const Source& timestep, const Source& noise) {
    using B = LtxvVector;
    Block block = graph_.add<B>("embed.vector");
    block.link(B::timestep, timestep).link(B::frame_noise, noise);
    blocks::Slots slots(file_, block, "embed.vector");
    const std::string at = "adaln_single.emb.timestep_embedder.";
    linear(slots, B::time_in, B::time_in_bias, at + "linear_1", s_.width, s_.waves);
    linear(slots, B::time_out, B::time_out_bias, at + "linear_2", s_.width, s_.width);
    return block[B::out];
  }

  Source share_modulation(const Source& vector) {
    using B = WanSharedModulation;
    Block block = graph_.add<B>("embed.modulation");
    block.link(B::vector, vector);
    blocks::Slots slots(file_, block, "embed.modulation");
    linear(slots, B::weight, B::bias, "adaln_single.linear", 6 * s_.width, s_.width);
    return block[B::out];
  }

  Source modulate(const std::string& path, const Source& shared, const std::string& table,
                  std::int64_t pieces) {
    using B = LtxvModulation;
    Block block = graph_.add<B>(path);
    block.link(B::shared, shared);
    blocks::Slots(file_, block, path).fill(B::table, names_.one(table), {pieces, s_.width});
    return block[B::out];
  }

  void add_rope(const Source& frame_time) {
    using B = LtxvRope;
    Block block = graph_.add<B>("embed.rope");
    block.link(B::x, x_).link(B::frame_time, frame_time).set(B::width, s_.width);
    block.link(B::guide_frames, guides_.frames).link(B::token_rows, guides_.rows);
    block.set(B::causal, o_.is_causal).set(B::theta, o_.theta);
    block.set(B::most_time, o_.most[0]).set(B::most_height, o_.most[1]);
    block.set(B::most_width, o_.most[2]);
    cos_ = block[B::cos], sin_ = block[B::sin];
  }

  Source embed_text(const Source& context) {
    using B = WanTextIn;
    Block block = graph_.add<B>("embed.text");
    block.link(B::context, context);
    blocks::Slots slots(file_, block, "embed.text");
    linear(slots, B::in, B::in_bias, "caption_projection.linear_1", s_.width, s_.text);
    linear(slots, B::last, B::last_bias, "caption_projection.linear_2", s_.width, s_.width);
    return block[B::out];
  }

  Source embed_latent() {
    using B = LtxvLatentIn;
    Block block = graph_.add<B>("embed.latent");
    block.link(B::x, x_).link(B::token_rows, guides_.rows);
    blocks::Slots slots(file_, block, "embed.latent");
    linear(slots, B::weight, B::bias, "patchify_proj", s_.width, s_.channels);
    return block[B::out];
  }

  Source add_keys(const std::string& path, const Source& seen, const std::string& at) {
    using B = WanKeys;
    Block block = graph_.add<B>(path);
    block.link(B::seen, seen).link(B::x, x_).set(B::eps, kHeadEps);
    blocks::Slots slots(file_, block, path);
    linear(slots, B::k, B::k_bias, at + "to_k", s_.width, s_.width);
    linear(slots, B::v, B::v_bias, at + "to_v", s_.width, s_.width);
    slots.fill(B::norm, names_.one(at + "k_norm.weight"), {s_.width});
    return block[B::out];
  }

  Source add_layer(const std::string& path, const std::string& at, const Source& hidden,
                   const Source& mod, const Source& text_kv) {
    using B = LtxvLayer;
    Block block = graph_.add<B>(path);
    block.link(B::hidden, hidden).link(B::mod, mod).link(B::text_kv, text_kv);
    block.link(B::cos, cos_).link(B::sin, sin_).set(B::heads, s_.heads).set(B::eps, o_.eps);
    block.link(B::guide_weights, guides_.weights).set(B::head_eps, kHeadEps);
    blocks::Slots slots(file_, block, path);
    const std::int64_t d = s_.width;
    const auto both = [&](const char* kind, const Weight& slot, const Shape& shape) {
      slots.fill(slot,
                 {{names_.one(at + "attn1.to_q." + kind)}, {names_.one(at + "attn1.to_k." + kind)}},
                 shape);
    };
    const auto norm = [&](const Weight& slot, const char* name) {
      slots.fill(slot, names_.one(at + name), {d});
    };
    both("weight", B::qk, {2 * d, d});
    both("bias", B::qk_bias, {2 * d});
    linear(slots, B::v, B::v_bias, at + "attn1.to_v", d, d);
    norm(B::q_norm, "attn1.q_norm.weight");
    norm(B::k_norm, "attn1.k_norm.weight");
    linear(slots, B::proj, B::proj_bias, at + "attn1.to_out.0", d, d);
    linear(slots, B::text_q, B::text_q_bias, at + "attn2.to_q", d, d);
    norm(B::text_q_norm, "attn2.q_norm.weight");
    linear(slots, B::text_proj, B::text_proj_bias, at + "attn2.to_out.0", d, d);
    linear(slots, B::up, B::up_bias, at + "ff.net.0.proj", s_.mlp, d);
    linear(slots, B::down, B::down_bias, at + "ff.net.2", d, s_.mlp);
    return block[B::out];
  }

  Source add_final(const Source& hidden, const Source& mod) {
    using B = LtxvFinal;
    Block block = graph_.add<B>("final.block");
    block.link(B::hidden, hidden).link(B::mod, mod).link(B::x, x_);
    block.link(B::token_places, guides_.places);
    blocks::Slots slots(file_, block, "final.block");
    linear(slots, B::weight, B::bias, "proj_out", s_.channels, s_.width);
    return block[B::out];
  }

  static constexpr double kHeadEps = 1e-5;

  const Checkpoint& file_;
  const LtxvNames& names_;
  const LtxvSizes& s_;
  const LtxvOptions& o_;
  Blocks& graph_;
  Source x_, cos_, sin_;
  GuideInputs guides_;
};

void add_ltxv_settings(const LtxvSizes& s, Blocks& graph) {
  graph.setting("family", "ltxv");
  graph.setting("latent_channels", s.channels);
  add_preview_factors(LatentKind::ltxv, s.channels, graph);
  graph.setting("latent_downscale", std::int64_t{32});
  graph.setting("latent_frames", true);
  graph.setting("latent_scale", 1.0);
  graph.setting("latent_shift", 0.0);
  graph.setting("patch", std::int64_t{1});
  graph.setting("guidance_embedded", false);
  graph.setting("context_width", s.text);
  graph.setting("text_encoder", "T5-XXL (CLIPLoader, type ltxv)");
  // How noise levels are spaced when no node says otherwise, as ComfyUI does. `sampling`: the
  // output is the velocity of a straight flow.
  graph.setting("sampling", "flow");
  graph.setting("noise_table", "flux");
  graph.setting("noise_mu", 2.37);
  graph.setting("mask_clean", true);
}

}  // namespace

int Ltxv::match(const Checkpoint& file, const Value&) {
  const std::optional<LtxvNames> names = LtxvNames::find(file);
  return names && !names->has_audio() ? 100 : 0;
}

void Ltxv::build(const Checkpoint& file, const Value& config, Blocks& graph) {
  const std::optional<LtxvNames> names = LtxvNames::find(file);
  if (!names) throw Error(HEDDLE_INVALID_ARGUMENT, file.path() + ": this is no model of LTX-Video");
  refuse_other_ltx(file, *names);
  const LtxvOptions options = read_options(file, config);
  const LtxvSizes sizes = read_ltxv_sizes(file, *names, options.heads);
  LtxvBuilder(file, *names, sizes, options, graph).run();
  add_ltxv_settings(sizes, graph);
}

}  // namespace heddle::denoisers
