#include "seedvr.h"

#include <optional>

#include "patches.h"
#include "plugins/blocks/slots.h"

namespace heddle::denoisers {
namespace {

constexpr double kSeedvrLatentScale = 0.9152;  // of the published autoencoder's latents
constexpr const char* kTextConfig = "texts";

std::optional<std::string> prefix_of(const Checkpoint& file) {
  return blocks::prefix_before(file, "emb_in.proj_hid.weight");
}

struct SeedvrSizes {
  std::string prefix;
  std::int64_t width, head, context_width, in_width, out_width, positive, negative;
  int layers;
  bool has_norm;  // before the last projection: 3B

  std::int64_t channels() const { return out_width / kPatchArea; }
  std::int64_t concat() const { return in_width / kPatchArea - channels(); }
  // Of each axis: a third of a head, of 7B of half a head, as ComfyUI has it.
  std::int64_t pairs() const { return has_norm ? head / 3 / 2 : head / 2 / 3 / 2; }
};

SeedvrSizes read_sizes(const Checkpoint& file) {
  const std::optional<std::string> prefix = prefix_of(file);
  if (!prefix) throw Error(HEDDLE_INVALID_ARGUMENT, file.path() + ": this is no model of SeedVR2");
  const std::string& p = *prefix;
  for (const char* text : {"positive_conditioning", "negative_conditioning"})
    if (!file.has(p + text))
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  file.path() + ": '" + p + text +
                      "' is missing, one of the two texts that this model is told. Take a file "
                      "that was made for ComfyUI's own nodes of SeedVR2.");
  SeedvrSizes s{.prefix = p,
                .width = file.size(p + "vid_in.proj.weight", 0),
                .head = 0,
                .context_width = file.size(p + "txt_in.weight", 1),
                .in_width = file.size(p + "vid_in.proj.weight", 1),
                .out_width = file.size(p + "vid_out.proj.weight", 0),
                .positive = file.size(p + "positive_conditioning", 0),
                .negative = file.size(p + "negative_conditioning", 0),
                .layers = blocks::layer_count(file, p + "blocks."),
                .has_norm = file.has(p + "vid_out_norm.weight")};
  for (const char* stream : {"vid", "all"}) {
    const std::string norm = p + "blocks.0.attn.norm_q." + stream + ".weight";
    if (file.has(norm)) s.head = file.size(norm, 0);
  }
  const auto damaged = [&](const std::string& why) {
    return Error(HEDDLE_INVALID_ARGUMENT,
                 file.path() + ": " + why + ". The file is damaged or of another model.");
  };
  if (s.head < 12 || s.head % 2 != 0 || s.width % s.head != 0)
    throw damaged("a width of " + std::to_string(s.width) + " is no multiple of heads of " +
                  std::to_string(s.head) + " numbers, of which there are to be an even number, " +
                  "12 or more");
  if (s.has_norm && s.head / 3 % 2 != 0)
    throw damaged("a third of a head of " + std::to_string(s.head) +
                  " numbers is not made of whole pairs");
  if (s.channels() < 1 || s.out_width % kPatchArea != 0 || s.in_width % kPatchArea != 0 ||
      s.concat() != s.channels() + 1)
    throw damaged("of a token " + std::to_string(s.in_width) + " numbers go in and " +
                  std::to_string(s.out_width) + " come out");
  return s;
}

// Builds the graph of one file.
class SeedvrBuilder {
 public:
  SeedvrBuilder(const Checkpoint& file, const SeedvrSizes& sizes, Blocks& graph)
      : file_(file), s_(sizes), graph_(graph) {
    x_ = graph.input("x", HEDDLE_INPUT_PER_STEP | HEDDLE_INPUT_BATCH);
  }

  void build() {
    timestep_ = graph_.input("timestep", HEDDLE_INPUT_PRECOMPUTED);
    context_ = graph_.input("context", HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_BATCH);
    const Source vector = embed_vector();
    const Rope ropes[] = {embed_rope("embed.rope", false), embed_rope("embed.shifted_rope", true)};
    Source txt = embed_text(), vid = embed_video();
    for (int i = 0; i < s_.layers; ++i) add_layer(i, vector, ropes[i % 2], vid, txt);
    add_last(vector, vid);
  }

  void build_texts() {
    using B = SeedvrTexts;
    Block block = graph_.add<B>("texts");
    block.link(B::x, x_);
    blocks::Slots slots(file_, block, "texts");
    slots.fill(B::positive, at("positive_conditioning"), {s_.positive, s_.context_width});
    slots.fill(B::negative, at("negative_conditioning"), {s_.negative, s_.context_width});
    graph_.output("positive", block[B::positive_out]);
    graph_.output("negative", block[B::negative_out]);
  }

 private:
  struct Rope {
    Source cos, sin;
  };

  std::string at(const std::string& name) const { return s_.prefix + name; }

  Source embed_vector() {
    using B = SeedvrVector;
    Block block = graph_.add<B>("embed.vector");
    block.link(B::timestep, timestep_);
    blocks::Slots slots(file_, block, "embed.vector");
    const std::string in = at("emb_in.proj_in");
    const std::int64_t hidden = file_.size(in + ".weight", 0);
    slots.fill(B::in, in + ".weight", {hidden, file_.size(in + ".weight", 1)});
    slots.fill(B::in_bias, in + ".bias", {hidden});
    slots.fill(B::middle, at("emb_in.proj_hid.weight"), {hidden, hidden});
    slots.fill(B::middle_bias, at("emb_in.proj_hid.bias"), {hidden});
    slots.fill(B::last, at("emb_in.proj_out.weight"), {6 * s_.width, hidden});
    slots.fill(B::last_bias, at("emb_in.proj_out.bias"), {6 * s_.width});
    return block[B::out];
  }

  Rope embed_rope(const char* path, bool shifted) {
    using B = SeedvrRope;
    Block block = graph_.add<B>(path);
    block.link(B::x, x_).link(B::context, context_).set(B::head, s_.head);
    block.set(B::pairs, s_.pairs()).set(B::of_language, s_.has_norm).set(B::shifted, shifted);
    return {block[B::cos], block[B::sin]};
  }

  Source embed_text() {
    using B = SeedvrTextIn;
    Block block = graph_.add<B>("embed.text");
    block.link(B::context, context_).link(B::x, x_);
    blocks::Slots slots(file_, block, "embed.text");
    slots.fill(B::weight, at("txt_in.weight"), {s_.width, s_.context_width});
    slots.fill(B::bias, at("txt_in.bias"), {s_.width});
    return block[B::out];
  }

  Source embed_video() {
    using B = SeedvrVideoIn;
    Block block = graph_.add<B>("embed.video");
    block.link(B::x, x_).link(
        B::concat, graph_.input("concat", HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_BATCH));
    blocks::Slots slots(file_, block, "embed.video");
    slots.fill(B::weight, at("vid_in.proj.weight"), {s_.width, s_.in_width});
    slots.fill(B::bias, at("vid_in.proj.bias"), {s_.width});
    return block[B::out];
  }

  // names: of what is added, "attn_shift".
  Source modulation(const std::string& path, const Source& vector, const std::string& module,
                    const std::vector<const char*>& names) {
    using B = SeedvrModulation;
    Block block = graph_.add<B>(path);
    block.link(B::vector, vector);
    std::vector<Part> parts;
    for (const char* name : names) parts.push_back({module + "." + name});
    blocks::Slots(file_, block, path)
        .fill(B::added, parts, {std::int64_t(names.size()) * s_.width});
    return block[B::out];
  }

  struct StreamSlots {
    const Weight &qkv, &norm_q, &norm_k, &proj, &proj_bias, &gate, &up, &up_bias, &down, &down_bias;
  };
  void fill_stream(blocks::Slots& slots, const std::string& layer, const std::string& stream,
                   const StreamSlots& to) const {
    const std::string attention = layer + "attn.", mlp = layer + "mlp." + stream;
    const std::int64_t d = s_.width, hidden = file_.size(mlp + ".proj_in.weight", 0);
    slots.fill(to.qkv, attention + "proj_qkv." + stream + ".weight", {3 * d, d});
    slots.fill(to.norm_q, attention + "norm_q." + stream + ".weight", {s_.head});
    slots.fill(to.norm_k, attention + "norm_k." + stream + ".weight", {s_.head});
    slots.fill(to.proj, attention + "proj_out." + stream + ".weight", {d, d});
    slots.fill(to.proj_bias, attention + "proj_out." + stream + ".bias", {d});
    const bool has_gate = file_.has(mlp + ".proj_in_gate.weight");
    if (has_gate) slots.fill(to.gate, mlp + ".proj_in_gate.weight", {hidden, d});
    slots.fill(to.up, mlp + ".proj_in.weight", {hidden, d});
    slots.fill(to.down, mlp + ".proj_out.weight", {d, hidden});
    if (has_gate) return;
    slots.fill(to.up_bias, mlp + ".proj_in.bias", {hidden});
    slots.fill(to.down_bias, mlp + ".proj_out.bias", {d});
  }

  void add_layer(int i, const Source& vector, const Rope& rope, Source& vid, Source& txt) {
    using B = SeedvrLayer;
    const std::string path = "layer." + std::to_string(i),
                      layer = at("blocks." + std::to_string(i) + ".");
    const bool is_shared = !file_.has(layer + "attn.proj_qkv.vid.weight");
    const std::vector<const char*> names{"attn_shift", "attn_scale", "attn_gate",
                                         "mlp_shift",  "mlp_scale",  "mlp_gate"};
    const std::string own = is_shared ? "all" : "vid", text = is_shared ? "all" : "txt";
    const Source mod = modulation(path + ".modulation", vector, layer + "ada." + own, names);
    Block block = graph_.add<B>(path + ".block");
    block.link(B::vid, vid).link(B::txt, txt).link(B::vid_mod, mod).link(B::x, x_);
    block.link(B::cos, rope.cos).link(B::sin, rope.sin);
    block.set(B::heads, s_.width / s_.head).set(B::shifted, i % 2 == 1);
    // The text of the last layer is not modulated where nothing reads what comes of it.
    if (!(s_.has_norm && i + 1 == s_.layers))
      block.link(B::txt_mod, is_shared ? mod
                                       : modulation(path + ".text_modulation", vector,
                                                    layer + "ada." + text, names));
    blocks::Slots slots(file_, block, path + ".block");
    fill_stream(slots, layer, own,
                {B::qkv, B::norm_q, B::norm_k, B::proj, B::proj_bias, B::gate, B::up, B::up_bias,
                 B::down, B::down_bias});
    if (!is_shared)
      fill_stream(slots, layer, text,
                  {B::txt_qkv, B::txt_norm_q, B::txt_norm_k, B::txt_proj, B::txt_proj_bias,
                   B::txt_gate, B::txt_up, B::txt_up_bias, B::txt_down, B::txt_down_bias});
    vid = block[B::vid_out];
    txt = block[B::txt_out];
  }

  void add_last(const Source& vector, const Source& vid) {
    using B = SeedvrVideoOut;
    // Its shift and scale are the attention's: as published, where they are kept by that number.
    const Source mod = s_.has_norm ? modulation("final.modulation", vector, at("vid_out_ada"),
                                                {"out_shift", "out_scale"})
                                   : Source{};
    Block block = graph_.add<B>("final.block");
    block.link(B::vid, vid).link(B::x, x_);
    blocks::Slots slots(file_, block, "final.block");
    if (s_.has_norm) {
      block.link(B::mod, mod);
      slots.fill(B::norm, at("vid_out_norm.weight"), {s_.width});
    }
    slots.fill(B::weight, at("vid_out.proj.weight"), {s_.out_width, s_.width});
    slots.fill(B::bias, at("vid_out.proj.bias"), {s_.out_width});
    graph_.output("out", block[B::out]);
  }

  const Checkpoint& file_;
  const SeedvrSizes& s_;
  Blocks& graph_;
  Source x_, timestep_, context_;
};

void add_seedvr_settings(const SeedvrSizes& s, Blocks& graph) {
  graph.setting("family", "seedvr2");
  graph.setting("latent_channels", s.channels());
  graph.setting("latent_downscale", std::int64_t{8});
  graph.setting("latent_frames", true);
  graph.setting("latent_scale", kSeedvrLatentScale);
  graph.setting("latent_shift", 0.0);
  graph.setting("patch", kPatch);
  graph.setting("guidance_embedded", false);
  graph.setting("context_width", s.context_width);
  graph.setting("text_encoder", "none: link SeedVR2Conditioning");
  // The latent that is made sharper and its mask come in one tensor, in the model's units.
  graph.setting("concat_channels", s.concat());
  graph.setting("concat_raw", true);
  graph.setting("concat_node", "SeedVR2Conditioning");
  // What SeedVR2Conditioning needs: the tokens of the file's texts, and the model that gives them.
  graph.setting("file_texts", list_of({value_of(s.positive), value_of(s.negative)}));
  graph.setting("texts_model", Record().set(kTextConfig, value_of(true)).value());
  graph.setting("sampling", "flow");
  graph.setting("noise_table", "discrete_flow");
  graph.setting("noise_shift", 1.0);
  graph.setting("noise_multiplier", 1000.0);
}

}  // namespace

int Seedvr::match(const Checkpoint& file, const Value&) {
  const std::optional<std::string> prefix = prefix_of(file);
  return prefix && file.has(*prefix + "vid_in.proj.weight") ? 100 : 0;
}

void Seedvr::build(const Checkpoint& file, const Value& config, Blocks& graph) {
  const SeedvrSizes sizes = read_sizes(file);
  SeedvrBuilder builder(file, sizes, graph);
  if (config.get<bool>(kTextConfig, false)) {
    builder.build_texts();
    graph.setting("family", "seedvr2");
    return;
  }
  builder.build();
  add_seedvr_settings(sizes, graph);
}

}  // namespace heddle::denoisers
