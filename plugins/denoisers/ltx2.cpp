#include "ltx2.h"

#include <algorithm>
#include <optional>
#include <string>

#include "ltx2_options.h"
#include "ltx2_sizes.h"
#include "ltx2_streams.h"
#include "ltxv_blocks.h"
#include "ltxv_guides.h"
#include "ltxv_names.h"
#include "plugins/blocks/slots.h"
#include "preview_factors.h"
#include "wan_blocks.h"

namespace heddle::denoisers {
namespace {

// Builds the graph of one file.
class Ltx2Builder {
 public:
  Ltx2Builder(const Checkpoint& file, const LtxvNames& names, const Ltx2Options& options,
              Blocks& graph)
      : file_(file), names_(names), o_(options), graph_(graph) {
    video_.size = read_ltx2_sizes(file, names, video_.prefix, o_.heads);
    audio_.size = read_ltx2_sizes(file, names, audio_.prefix, o_.audio_heads);
    between_ = file_.size(names_.one("transformer_blocks.0.audio_to_video_attn.to_q.weight"), 0);
    waves_ = file_.size(names_.one("adaln_single.emb.timestep_embedder.linear_1.weight"), 1);
    check_ltx2_heads(file, between_, o_.audio_heads);
  }

  void run() {
    add_inputs();
    for (Ltx2Stream* const stream : {&video_, &audio_}) {
      add_levels(*stream);
      add_text(*stream);
    }
    cross_levels(video_, audio_, "av_ca_video_scale_shift_adaln_single",
                 "av_ca_a2v_gate_adaln_single");
    cross_levels(audio_, video_, "av_ca_audio_scale_shift_adaln_single",
                 "av_ca_v2a_gate_adaln_single");
    add_tables();
    add_beginnings();
    const int layers = names_.layers();
    for (int i = 0; i < layers; ++i) add_layer(i);
    add_ends();
  }

  // Both connectors read all of a text (LTX 2, whose layers project what they made), or each its
  // own columns; without them it is what they make.
  std::int64_t text_width() const {
    const bool is_shared = connected_ && names_.has("caption_projection.linear_1.weight");
    return video_.size.text + (is_shared ? 0 : audio_.size.text);
  }
  std::int64_t channels() const { return video_.size.channels; }

 private:
  void linear(blocks::Slots& slots, const Weight& matrix, const Weight& bias,
              const std::string& module, std::int64_t out, std::int64_t in) const {
    slots.fill(matrix, names_.one(module + ".weight"), {out, in});
    slots.fill(bias, names_.one(module + ".bias"), {out});
  }
  // Of which one or both may be missing.
  void optional_linear(blocks::Slots& slots, const Weight& matrix, const Weight& bias,
                       const std::string& module, std::int64_t out, std::int64_t in) const {
    if (names_.has(module + ".weight"))
      slots.fill(matrix, names_.one(module + ".weight"), {out, in});
    if (names_.has(module + ".bias")) slots.fill(bias, names_.one(module + ".bias"), {out});
  }

  void add_inputs() {
    constexpr std::uint32_t kPoint = HEDDLE_INPUT_PER_STEP | HEDDLE_INPUT_BATCH,
                            kMaybe = HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_OPTIONAL;
    video_.latent = graph_.input("x", kPoint);
    audio_.latent = graph_.input("audio", kPoint);
    timestep_ = graph_.input("timestep", HEDDLE_INPUT_PRECOMPUTED);
    context_ = graph_.input("context", HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_BATCH);
    if (Ltx2ConnectorNames::find(file_, "video"))
      connected_ = add_ltx2_connectors(file_, o_.connectors, context_, graph_);
    frame_time_ = graph_.input("frame_time", HEDDLE_INPUT_LOOP_INVARIANT);
    guides_ = guide_inputs(graph_);
    voice_ = graph_.input("voice", kMaybe | HEDDLE_INPUT_BATCH);
    video_.noise = graph_.input("frame_noise", kMaybe);
    audio_.noise = graph_.input("audio_noise", kMaybe);
    video_.most = graph_.input("frame_most", kMaybe);
    audio_.most = graph_.input("audio_most", kMaybe);
  }

  // What a module makes of the level times `noise`: (N, F', D).
  Source add_vector(const std::string& path, const std::string& module, std::int64_t width,
                    const Source& noise, double scale = 1000) {
    using B = LtxvVector;
    Block block = graph_.add<B>(path + ".vector");
    block.link(B::timestep, timestep_).link(B::frame_noise, noise).set(B::time_scale, scale);
    blocks::Slots slots(file_, block, path + ".vector");
    const std::string at = module + ".emb.timestep_embedder.";
    linear(slots, B::time_in, B::time_in_bias, at + "linear_1", width, waves_);
    linear(slots, B::time_out, B::time_out_bias, at + "linear_2", width, width);
    return block[B::out];
  }
  Source add_shared(const std::string& path, const std::string& module, const Source& vector,
                    std::int64_t width, std::int64_t pieces) {
    using B = WanSharedModulation;
    Block block = graph_.add<B>(path);
    block.link(B::vector, vector);
    blocks::Slots slots(file_, block, path);
    linear(slots, B::weight, B::bias, module + ".linear", pieces * width, width);
    return block[B::out];
  }
  void add_levels(Ltx2Stream& s) {
    const std::string path = "embed." + s.path, module = s.prefix + "adaln_single",
                      prompt = s.prefix + "prompt_adaln_single";
    s.vector = add_vector(path, module, s.size.width, s.noise);
    s.shared = add_shared(path + ".modulation", module, s.vector, s.size.width, s.size.pieces);
    if (!names_.has(prompt + ".linear.weight")) return;
    const Source vector = add_vector(path + ".prompt", prompt, s.size.width, s.most);
    s.text_shared = add_shared(path + ".prompt.modulation", prompt, vector, s.size.width, 2);
  }
  void cross_levels(Ltx2Stream& s, const Ltx2Stream& other, const std::string& module,
                    const std::string& gate) {
    const std::string path = "embed." + s.path + ".cross";
    s.cross_shared =
        add_shared(path + ".modulation", module, add_vector(path, module, s.size.width, other.most),
                   s.size.width, 4);
    s.cross_gate = add_shared(
        path + ".gate", gate,
        add_vector(path + ".gate", gate, s.size.width, other.most, o_.gate_scale), s.size.width, 1);
  }

  void add_text(Ltx2Stream& s) {
    const std::string path = "embed." + s.path + ".text";
    const bool is_audio = &s == &audio_;
    if (connected_) {
      s.text = is_audio ? connected_->audio : connected_->video;
    } else {
      Block part = graph_.add<Ltx2TextPart>(path + ".part");
      part.link(Ltx2TextPart::context, context_);
      part.set(Ltx2TextPart::begin, is_audio ? video_.size.text : 0)
          .set(Ltx2TextPart::width, s.size.text);
      s.text = part[Ltx2TextPart::out];
    }
    const std::string module = s.prefix + "caption_projection.linear_";
    if (!names_.has(module + "1.weight")) return;
    using B = WanTextIn;
    Block block = graph_.add<B>(path);
    block.link(B::context, s.text);
    blocks::Slots slots(file_, block, path);
    linear(slots, B::in, B::in_bias, module + "1", s.size.width, s.size.text);
    linear(slots, B::last, B::last_bias, module + "2", s.size.width, s.size.width);
    s.text = block[B::out];
  }

  Ltx2Table add_rope(const std::string& path, const Ltx2Stream& s, std::int64_t width,
                     std::int64_t axes, double most_time) {
    using B = Ltx2Rope;
    Block block = graph_.add<B>(path);
    block.link(B::latent, s.latent).set(B::width, width).set(B::axes, axes);
    block.set(B::theta, o_.theta).set(B::most_time, most_time);
    block.set(B::most_height, o_.most[1]).set(B::most_width, o_.most[2]);
    if (&s == &video_) {
      // A frame stands for 8 pictures, the first one for one.
      block.link(B::frame_time, frame_time_).link(B::guide_frames, guides_.frames);
      block.link(B::token_rows, guides_.rows);
      block.set(B::step, 8.0).set(B::offset, -3.0);
    } else {
      // A frame stands for 4 rows of the spectrogram, the first one for one, of 10 ms each.
      block.link(B::voice, voice_);
      block.set(B::step, 4.0).set(B::offset, -1.0).set(B::unit, 0.01);
    }
    block.set(B::least, 0.5);
    return {block[B::cos], block[B::sin]};
  }
  void add_tables() {
    const double most = std::max(o_.most[0], o_.audio_most);
    video_.rope = add_rope("embed.video.rope", video_, video_.size.width, 3, o_.most[0]);
    audio_.rope = add_rope("embed.audio.rope", audio_, audio_.size.width, 1, o_.audio_most);
    for (Ltx2Stream* const s : {&video_, &audio_})
      s->cross_rope = add_rope("embed." + s->path + ".cross.rope", *s, between_, 1, most);
  }

  void add_beginnings() {
    Block video = graph_.add<LtxvLatentIn>("embed.video.latent");
    video.link(LtxvLatentIn::x, video_.latent).link(LtxvLatentIn::token_rows, guides_.rows);
    blocks::Slots slots(file_, video, "embed.video.latent");
    linear(slots, LtxvLatentIn::weight, LtxvLatentIn::bias, "patchify_proj", video_.size.width,
           video_.size.channels);
    if (names_.has("keyframes_abs_pos_embedding"))
      slots.fill(LtxvLatentIn::marker, names_.one("keyframes_abs_pos_embedding"),
                 {1, video_.size.width});
    video_.hidden = video[LtxvLatentIn::out];
    Block audio = graph_.add<Ltx2AudioIn>("embed.audio.latent");
    audio.link(Ltx2AudioIn::audio, audio_.latent).link(Ltx2AudioIn::voice, voice_);
    blocks::Slots audio_slots(file_, audio, "embed.audio.latent");
    linear(audio_slots, Ltx2AudioIn::weight, Ltx2AudioIn::bias, "audio_patchify_proj",
           audio_.size.width, audio_.size.channels);
    audio_.hidden = audio[Ltx2AudioIn::out];
  }

  Source modulate(const std::string& path, const Source& shared, const std::string& table,
                  std::int64_t pieces, std::int64_t width) {
    using B = LtxvModulation;
    Block block = graph_.add<B>(path);
    block.link(B::shared, shared);
    blocks::Slots(file_, block, path).fill(B::table, names_.one(table), {pieces, width});
    return block[B::out];
  }
  Source cross_modulate(const std::string& path, const Ltx2Stream& s, const std::string& table) {
    using B = Ltx2CrossModulation;
    Block block = graph_.add<B>(path);
    block.link(B::shared, s.cross_shared).link(B::gate, s.cross_gate);
    blocks::Slots(file_, block, path).fill(B::table, names_.one(table), {5, s.size.width});
    return block[B::out];
  }
  Source add_keys(const std::string& path, const Ltx2Stream& s, const std::string& at) {
    using B = Ltx2Keys;
    Block block = graph_.add<B>(path);
    block.link(B::seen, s.text).link(B::x, s.latent).set(B::eps, o_.eps);
    const std::string attention = at + s.prefix + "attn2.",
                      table = at + s.prefix + "prompt_scale_shift_table";
    // Projected, or as it came.
    const std::int64_t seen =
        names_.has(s.prefix + "caption_projection.linear_1.weight") ? s.size.width : s.size.text;
    blocks::Slots slots(file_, block, path);
    if (names_.has(table)) {
      slots.fill(B::table, names_.one(table), {2, seen});
      if (s.text_shared) block.link(B::shared, *s.text_shared).link(B::point, s.latent);
    }
    linear(slots, B::k, B::k_bias, attention + "to_k", s.size.width, seen);
    linear(slots, B::v, B::v_bias, attention + "to_v", s.size.width, seen);
    slots.fill(B::norm, names_.one(attention + "k_norm.weight"), {s.size.width});
    return block[B::out];
  }

  void add_attend(const std::string& path, const std::string& at, Ltx2Stream& s, const Source& mod,
                  const Source& text_kv) {
    using B = Ltx2Attend;
    Block block = graph_.add<B>(path);
    block.link(B::hidden, s.hidden).link(B::mod, mod).link(B::text_kv, text_kv);
    block.link(B::cos, s.rope.cos)
        .link(B::sin, s.rope.sin)
        .set(B::heads, s.size.heads)
        .set(B::eps, o_.eps);
    block.set(B::is_split, o_.is_split);
    if (&s == &video_) block.link(B::guide_weights, guides_.weights);
    blocks::Slots slots(file_, block, path);
    const std::string own = at + s.prefix + "attn1.", text = at + s.prefix + "attn2.";
    const std::int64_t d = s.size.width;
    linear(slots, B::q, B::q_bias, own + "to_q", d, d);
    linear(slots, B::k, B::k_bias, own + "to_k", d, d);
    linear(slots, B::v, B::v_bias, own + "to_v", d, d);
    slots.fill(B::q_norm, names_.one(own + "q_norm.weight"), {d});
    slots.fill(B::k_norm, names_.one(own + "k_norm.weight"), {d});
    optional_linear(slots, B::gates, B::gates_bias, own + "to_gate_logits", s.size.heads, d);
    linear(slots, B::proj, B::proj_bias, own + "to_out.0", d, d);
    linear(slots, B::text_q, B::text_q_bias, text + "to_q", d, d);
    slots.fill(B::text_q_norm, names_.one(text + "q_norm.weight"), {d});
    optional_linear(slots, B::text_gates, B::text_gates_bias, text + "to_gate_logits", s.size.heads,
                    d);
    linear(slots, B::text_proj, B::text_proj_bias, text + "to_out.0", d, d);
    s.hidden = block[B::out];
  }

  // What stream s sees of the other, as both are before either looks.
  Source add_cross(const std::string& path, const std::string& module, const Ltx2Stream& s,
                   const Ltx2Stream& other, const Source& mod, const Source& other_mod) {
    using B = Ltx2Cross;
    Block block = graph_.add<B>(path);
    block.link(B::hidden, s.hidden).link(B::other, other.hidden);
    block.link(B::mod, mod).link(B::other_mod, other_mod);
    block.link(B::cos, s.cross_rope.cos).link(B::sin, s.cross_rope.sin);
    block.link(B::other_cos, other.cross_rope.cos).link(B::other_sin, other.cross_rope.sin);
    block.set(B::first, std::int64_t(&s == &video_ ? 0 : 2)).set(B::heads, o_.audio_heads);
    block.set(B::eps, o_.eps).set(B::is_split, o_.is_split);
    blocks::Slots slots(file_, block, path);
    linear(slots, B::q, B::q_bias, module + ".to_q", between_, s.size.width);
    linear(slots, B::k, B::k_bias, module + ".to_k", between_, other.size.width);
    linear(slots, B::v, B::v_bias, module + ".to_v", between_, other.size.width);
    slots.fill(B::q_norm, names_.one(module + ".q_norm.weight"), {between_});
    slots.fill(B::k_norm, names_.one(module + ".k_norm.weight"), {between_});
    optional_linear(slots, B::gates, B::gates_bias, module + ".to_gate_logits", o_.audio_heads,
                    s.size.width);
    linear(slots, B::proj, B::proj_bias, module + ".to_out.0", s.size.width, between_);
    return block[B::out];
  }

  void add_mlp(const std::string& path, const std::string& at, Ltx2Stream& s, const Source& mod) {
    using B = Ltx2Mlp;
    Block block = graph_.add<B>(path);
    block.link(B::hidden, s.hidden).link(B::mod, mod).set(B::eps, o_.eps);
    blocks::Slots slots(file_, block, path);
    const std::string module = at + s.prefix + "ff.net.";
    slots.fill(B::up, names_.one(module + "0.proj.weight"), {s.size.mlp, s.size.width});
    slots.fill(B::down, names_.one(module + "2.weight"), {s.size.width, s.size.mlp});
    if (names_.has(module + "0.proj.bias"))
      slots.fill(B::up_bias, names_.one(module + "0.proj.bias"), {s.size.mlp});
    if (names_.has(module + "2.bias"))
      slots.fill(B::down_bias, names_.one(module + "2.bias"), {s.size.width});
    s.hidden = block[B::out];
  }

  void add_layer(int i) {
    const std::string path = "layer." + std::to_string(i) + ".",
                      at = "transformer_blocks." + std::to_string(i) + ".";
    Source mods[2], cross[2];
    int n = 0;
    for (Ltx2Stream* const s : {&video_, &audio_}) {
      const std::string here = path + s->path;
      mods[n] = modulate(here + ".modulation", s->shared, at + s->prefix + "scale_shift_table",
                         s->size.pieces, s->size.width);
      add_attend(here + ".attend", at, *s, mods[n], add_keys(here + ".text", *s, at));
      cross[n] = cross_modulate(here + ".cross.modulation", *s,
                                at + "scale_shift_table_a2v_ca_" + s->path);
      ++n;
    }
    const Source video = add_cross(path + "video.cross", at + "audio_to_video_attn", video_, audio_,
                                   cross[0], cross[1]),
                 audio = add_cross(path + "audio.cross", at + "video_to_audio_attn", audio_, video_,
                                   cross[1], cross[0]);
    video_.hidden = video;
    audio_.hidden = audio;
    add_mlp(path + "video.mlp", at, video_, mods[0]);
    add_mlp(path + "audio.mlp", at, audio_, mods[1]);
  }

  void add_ends() {
    const Source mod = modulate("final.video.modulation", video_.vector, "scale_shift_table", 2,
                                video_.size.width);
    Block video = graph_.add<LtxvFinal>("final.video");
    video.link(LtxvFinal::hidden, video_.hidden).link(LtxvFinal::mod, mod);
    video.link(LtxvFinal::x, video_.latent).link(LtxvFinal::token_places, guides_.places);
    video.set(LtxvFinal::eps, o_.eps);
    blocks::Slots slots(file_, video, "final.video");
    linear(slots, LtxvFinal::weight, LtxvFinal::bias, "proj_out", video_.size.channels,
           video_.size.width);
    graph_.output("out", video[LtxvFinal::out]);
    using B = Ltx2AudioFinal;
    const Source audio_mod = modulate("final.audio.modulation", audio_.vector,
                                      "audio_scale_shift_table", 2, audio_.size.width);
    Block audio = graph_.add<B>("final.audio");
    audio.link(B::hidden, audio_.hidden).link(B::mod, audio_mod).link(B::audio, audio_.latent);
    audio.set(B::eps, o_.eps);
    blocks::Slots audio_slots(file_, audio, "final.audio");
    linear(audio_slots, B::weight, B::bias, "audio_proj_out", audio_.size.channels,
           audio_.size.width);
    graph_.output("audio_out", audio[B::out]);
  }

  const Checkpoint& file_;
  const LtxvNames& names_;
  const Ltx2Options& o_;
  Blocks& graph_;
  Ltx2Stream video_{"video", ""}, audio_{"audio", "audio_"};
  std::int64_t between_ = 0, waves_ = 0;
  Source timestep_, context_, frame_time_;
  GuideInputs guides_;
  Source voice_;
  std::optional<Ltx2Contexts> connected_;  // by the file's connectors
};

}  // namespace

int Ltx2::match(const Checkpoint& file, const Value&) {
  const std::optional<LtxvNames> names = LtxvNames::find(file);
  return names && names->has_audio() ? 100 : 0;
}

void Ltx2::build(const Checkpoint& file, const Value& config, Blocks& graph) {
  const std::optional<LtxvNames> names = LtxvNames::find(file);
  if (!names) throw Error(HEDDLE_INVALID_ARGUMENT, file.path() + ": this is no model of LTX 2");
  const Ltx2Options options = read_ltx2_options(file, config);
  Ltx2Builder builder(file, *names, options, graph);
  builder.run();
  graph.setting("family", "ltx2");
  graph.setting("latent_channels", builder.channels());
  add_preview_factors(LatentKind::ltx2, builder.channels(), graph);
  graph.setting("latent_downscale", std::int64_t{32});
  graph.setting("latent_frames", true);
  graph.setting("latent_sound", true);
  graph.setting("latent_scale", 1.0);
  graph.setting("latent_shift", 0.0);
  graph.setting("patch", std::int64_t{1});
  graph.setting("guidance_embedded", false);
  graph.setting("context_width", builder.text_width());
  graph.setting(
      "text_encoder",
      "Gemma 3 12B (LTXAVTextEncoderLoader), of LTX 2.5 Gemma 4 12B (CLIPLoader, type ltxv)");
  // How noise levels are spaced when no node says otherwise, as ComfyUI does. `sampling`: the
  // output is the velocity of a straight flow.
  graph.setting("sampling", "flow");
  graph.setting("noise_table", "flux");
  graph.setting("noise_mu", 2.37);
  graph.setting("mask_clean", true);
}

}  // namespace heddle::denoisers
