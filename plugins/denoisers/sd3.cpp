#include "sd3.h"

#include "control.h"
#include "dual_stream.h"
#include "flux_blocks.h"
#include "patches.h"
#include "preview_factors.h"
#include "sd3_names.h"

namespace heddle::denoisers {
namespace {

constexpr std::int64_t kSd3Head = 64;
constexpr double kSd3LatentScale = 1.5305, kSd3LatentShift = 0.0609;

// The modules as dual_stream.h asks for them.
FindModule modules_of(const Sd3Names& names) {
  return {[&names](std::string_view module, const char* kind) {
    return names.top(module == "txt_in" ? "context_embedder" : module, kind);
  }};
}

struct Sd3Sizes {
  StreamSizes streams;
  std::int64_t channels, pooled_width,
      positions;  // channels, positions: 0 where none are in the file
};

std::int64_t square_side(const Checkpoint& file, const Sd3Names& names, std::int64_t positions) {
  std::int64_t side = 0;
  while (side * side < positions) ++side;
  if (side * side != positions)
    throw Error(HEDDLE_INVALID_ARGUMENT, file.path() + ": '" + names.positions() + "' has " +
                                             std::to_string(positions) +
                                             " positions, which are no square");
  return side;
}

// What a ControlNet lacks of a denoiser is 0.
Sd3Sizes read_sizes(const Checkpoint& file, const Value& config, const Sd3Names& names,
                    bool is_control = false) {
  const auto size = [&](std::string_view module, std::uint32_t axis) {
    return file.size(names.top(module, "weight").front().tensor, axis);
  };
  Sd3Sizes d{};
  StreamSizes& s = d.streams;
  s.hidden = size("t_embedder.mlp.2", 0);
  s.time_width = size("t_embedder.mlp.0", 1);
  d.pooled_width = size("y_embedder.mlp.0", 1);
  s.doubles = names.depth();
  if (!is_control || names.has(names.top("x_embedder.proj", "weight"))) {
    d.channels = size("x_embedder.proj", 1);
    d.positions = file.size(names.positions(), 1);
  }
  if (!is_control || names.has(names.top("context_embedder", "weight")))
    s.context_width = size("context_embedder", 1);
  s.in_width = s.out_width = d.channels * kPatchArea;
  if (!is_control) s.out_width = size("final_layer.linear", 0);
  s.expose_blocks = config.get<bool>("expose_blocks", false);
  const std::vector<Part> norm = names.in_block(0, "x_block.attn.ln_q", "weight");
  s.head_size = names.has(norm) ? file.size(norm.front().tensor, 0)
                                : config.get<std::int64_t>("attention_head_dim", kSd3Head);
  if (s.head_size <= 0 || s.hidden % s.head_size != 0)
    throw Error(HEDDLE_INVALID_ARGUMENT, file.path() + ": a width of " + std::to_string(s.hidden) +
                                             " is no multiple of the head size " +
                                             std::to_string(s.head_size));
  if (s.out_width != s.in_width)
    throw Error(HEDDLE_UNSUPPORTED, file.path() + ": tokens of " + std::to_string(s.in_width) +
                                        " numbers in, " + std::to_string(s.out_width) +
                                        " out: models that read more than the latent "
                                        "are not supported. Use one for text to image.");
  square_side(file, names, d.positions);
  s.heads = s.hidden / s.head_size;
  return d;
}

// Slots of one stream, and the name that its modules begin with.
struct Sd3Slots {
  const char* name;
  const Weight &qkv, &qkv_bias, &q_norm, &k_norm, &proj, &proj_bias;
};
using Joint = Sd3Joint;
constexpr Sd3Slots kPictureSlots{"x_block.attn.",     Joint::img_qkv,    Joint::img_qkv_bias,
                                 Joint::img_q_norm,   Joint::img_k_norm, Joint::img_proj,
                                 Joint::img_proj_bias};
constexpr Sd3Slots kSecondSlots{"x_block.attn2.",    Joint::own_qkv,    Joint::own_qkv_bias,
                                Joint::own_q_norm,   Joint::own_k_norm, Joint::own_proj,
                                Joint::own_proj_bias};
constexpr Sd3Slots kTextSlots{"context_block.attn.", Joint::txt_qkv,    Joint::txt_qkv_bias,
                              Joint::txt_q_norm,     Joint::txt_k_norm, Joint::txt_proj,
                              Joint::txt_proj_bias};

// Builds the graph of one file.
class Sd3Builder {
 public:
  Sd3Builder(const Checkpoint& file, const Sd3Names& names, const Sd3Sizes& sizes, Blocks& graph)
      : file_(file),
        names_(names),
        d_(sizes),
        s_(sizes.streams),
        graph_(graph),
        streams_(file, sizes.streams, graph, modules_of(names)) {}

  // `part` "tokens": what becomes of the latent before the first block, for ControlNets that begin
  // with that.
  void run(const std::string& part) {
    const Source x = graph_.input("x", HEDDLE_INPUT_PER_STEP | HEDDLE_INPUT_BATCH);
    if (part == "tokens") return graph_.output("tokens", embed_image(x));
    const Source timestep = graph_.input("timestep", HEDDLE_INPUT_PRECOMPUTED);
    control_ = graph_.input("control.double",
                            HEDDLE_INPUT_PER_STEP | HEDDLE_INPUT_OPTIONAL | HEDDLE_INPUT_BATCH);
    const Source context =
        graph_.input("context", HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_BATCH);
    const Source y = graph_.input("y", HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_BATCH);
    const Source vector = embed_vector(timestep, y);
    Source txt = embed_text(context, x), img = embed_image(x);
    for (int i = 0; i < s_.doubles; ++i) add_joint(i, vector, img, txt, i + 1 == s_.doubles);
    graph_.output("out", streams_.add_final(vector, img, x, {}));
  }

  // A ControlNet's graph.
  void run(const ControlBuilder& control) {
    const Source x = graph_.input("x", HEDDLE_INPUT_PER_STEP | HEDDLE_INPUT_BATCH);
    const Source timestep = graph_.input("timestep", HEDDLE_INPUT_PRECOMPUTED);
    const Source y = graph_.input("y", HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_BATCH);
    const Source vector = embed_vector(timestep, y);
    Source img = d_.channels > 0
                     ? embed_image(x)
                     : graph_.input("tokens", HEDDLE_INPUT_PER_STEP | HEDDLE_INPUT_BATCH);
    img = control.add_hint_tokens(img, embed_hint(control.hint()));
    Source txt;
    if (s_.context_width > 0)
      txt =
          embed_text(graph_.input("context", HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_BATCH), x);
    for (int i = 0; i < s_.doubles; ++i) {
      if (s_.context_width > 0)
        add_joint(i, vector, img, txt, false);
      else
        add_single(i, vector, img);
      control.add_residual("double", i, "controlnet_blocks." + std::to_string(i), img, x);
    }
  }

 private:
  void layer(blocks::Slots& slots, const Weight& matrix, const Weight& bias, const char* module,
             std::int64_t out, std::int64_t in) const {
    DualStreams::linear(slots, matrix, bias, modules_of(names_)(module), out, in);
  }

  Source embed_vector(const Source& timestep, const Source& y) {
    using B = FluxVector;
    Block block = graph_.add<B>("embed.vector");
    block.link(B::timestep, timestep).link(B::y, y).set(B::time_scale, 1.0);
    blocks::Slots slots(file_, block, "embed.vector");
    layer(slots, B::time_in, B::time_in_bias, "t_embedder.mlp.0", s_.hidden, s_.time_width);
    layer(slots, B::time_out, B::time_out_bias, "t_embedder.mlp.2", s_.hidden, s_.hidden);
    layer(slots, B::text_in, B::text_in_bias, "y_embedder.mlp.0", s_.hidden, d_.pooled_width);
    layer(slots, B::text_out, B::text_out_bias, "y_embedder.mlp.2", s_.hidden, s_.hidden);
    return block[B::out];
  }

  Source embed_text(const Source& context, const Source& x) {
    using B = FluxTextIn;
    Block block = graph_.add<B>("embed.text");
    block.link(B::context, context).link(B::x, x);
    blocks::Slots slots(file_, block, "embed.text");
    layer(slots, B::weight, B::bias, "context_embedder", s_.hidden, s_.context_width);
    return block[B::out];
  }

  Source embed_image(const Source& x) {
    using B = Sd3ImageIn;
    Block block = graph_.add<B>("embed.image");
    block.link(B::x, x);
    blocks::Slots slots(file_, block, "embed.image");
    slots.fill(B::weight, names_.top("x_embedder.proj", "weight"),
               {s_.hidden, d_.channels, kPatch, kPatch});
    slots.fill(B::bias, names_.top("x_embedder.proj", "bias"), {s_.hidden});
    slots.fill(B::positions, names_.positions(), {1, d_.positions, s_.hidden});
    return block[B::out];
  }

  Source embed_hint(const Source& hint) {
    using B = ControlHintIn;
    Block block = graph_.add<B>("embed.hint");
    block.link(B::hint, hint);
    blocks::Slots slots(file_, block, "embed.hint");
    const std::string module = names_.prefix() + "pos_embed_input.proj";
    slots.fill(B::weight, module + ".weight",
               {s_.hidden, file_.size(module + ".weight", 1), kPatch, kPatch});
    slots.fill(B::bias, module + ".bias", {s_.hidden});
    return block[B::out];
  }

  // The modules of a block.
  FindModule inside(int index) const {
    return {[names = &names_, index](std::string_view module, const char* kind) {
      return names->in_block(index, module, kind);
    }};
  }

  void fill_attention(blocks::Slots& slots, const Sd3Slots& w, const FindModule& find,
                      bool is_projected) const {
    const auto module = [&](const char* name) { return find(std::string(w.name) + name); };
    DualStreams::linear(slots, w.qkv, w.qkv_bias, module("qkv"), 3 * s_.hidden, s_.hidden);
    if (is_projected)
      DualStreams::linear(slots, w.proj, w.proj_bias, module("proj"), s_.hidden, s_.hidden);
    // All blocks of 3.5 have these norms, none of 3 has.
    if (!names_.has(names_.in_block(0, "x_block.attn.ln_q", "weight"))) return;
    slots.fill(w.q_norm, module("ln_q")("weight"), {s_.head_size});
    slots.fill(w.k_norm, module("ln_k")("weight"), {s_.head_size});
  }

  void fill_mlp(blocks::Slots& slots, const FindModule& find) const {
    const std::int64_t mlp = streams_.mlp_width(find("x_block.mlp.fc1")), d = s_.hidden;
    DualStreams::linear(slots, Joint::img_up, Joint::img_up_bias, find("x_block.mlp.fc1"), mlp, d);
    DualStreams::linear(slots, Joint::img_down, Joint::img_down_bias, find("x_block.mlp.fc2"), d,
                        mlp);
  }

  // A block without a text.
  void add_single(int index, const Source& vector, Source& img) {
    const std::string path = "double." + std::to_string(index);
    const FindModule find = inside(index);
    Block block = graph_.add<Sd3Single>(path + ".block");
    block.link(Joint::img, img)
        .link(Joint::img_mod, streams_.modulation(path + ".modulation.img", vector,
                                                  find("x_block.adaLN_modulation.1"), 6))
        .set(Joint::heads, s_.heads);
    blocks::Slots slots(file_, block, path + ".block");
    fill_attention(slots, kPictureSlots, find, true);
    fill_mlp(slots, find);
    img = block[Joint::img_out];
  }

  void add_joint(int index, const Source& vector, Source& img, Source& txt, bool is_last) {
    const std::string path = "double." + std::to_string(index);
    const FindModule find = inside(index);
    const bool is_dual = names_.has(find.parts("x_block.attn2.qkv", "weight"));
    const Source img_mod = streams_.modulation(path + ".modulation.img", vector,
                                               find("x_block.adaLN_modulation.1"), is_dual ? 9 : 6);
    const Source txt_mod =
        streams_.modulation(path + ".modulation.txt", vector,
                            find("context_block.adaLN_modulation.1"), is_last ? 2 : 6);
    Block block = graph_.add<Joint>(path + ".block");
    block.link(Joint::img, img).link(Joint::txt, txt);
    block.link(Joint::img_mod, img_mod).link(Joint::txt_mod, txt_mod).set(Joint::heads, s_.heads);
    // The last block's text has no residual beside it either.
    if (control_ && !is_last)
      block.link(Joint::control, *control_)
          .set(Joint::control_index, index)
          .set(Joint::control_depth, s_.doubles);
    blocks::Slots slots(file_, block, path + ".block");
    fill_attention(slots, kPictureSlots, find, true);
    if (is_dual) fill_attention(slots, kSecondSlots, find, true);
    fill_attention(slots, kTextSlots, find, !is_last);
    fill_mlp(slots, find);
    const std::int64_t mlp = streams_.mlp_width(find("context_block.mlp.fc1")), d = s_.hidden;
    const auto linear = [&](const Weight& matrix, const Weight& bias, const char* module,
                            std::int64_t out, std::int64_t in) {
      DualStreams::linear(slots, matrix, bias, find(module), out, in);
    };
    if (!is_last) {
      linear(Joint::txt_up, Joint::txt_up_bias, "context_block.mlp.fc1", mlp, d);
      linear(Joint::txt_down, Joint::txt_down_bias, "context_block.mlp.fc2", d, mlp);
    }
    img = block[Joint::img_out];
    txt = block[Joint::txt_out];
    streams_.expose(path + ".img", img);
    if (!is_last) streams_.expose(path + ".txt", txt);
  }

  const Checkpoint& file_;
  const Sd3Names& names_;
  const Sd3Sizes& d_;
  const StreamSizes& s_;
  Blocks& graph_;
  const DualStreams streams_;
  std::optional<Source> control_;
};

void add_settings(const Sd3Sizes& d, Blocks& graph) {
  graph.setting("family", "sd3");
  graph.setting("latent_channels", d.channels);
  graph.setting("latent_downscale", std::int64_t{8});
  add_preview_factors(LatentKind::sd3, d.channels, graph);
  graph.setting("latent_scale", kSd3LatentScale);
  graph.setting("latent_shift", kSd3LatentShift);
  graph.setting("patch", kPatch);
  graph.setting("guidance_embedded", false);
  graph.setting("context_width", d.streams.context_width);
  graph.setting("pooled_width", d.pooled_width);
  graph.setting("text_encoder", "CLIP-L, CLIP-G and T5-XXL (TripleCLIPLoader)");
  // How noise levels are spaced when no node says otherwise, as ComfyUI does.
  graph.setting("sampling", "flow");
  graph.setting("noise_table", "discrete_flow");
  graph.setting("noise_shift", 3.0);
  graph.setting("noise_multiplier", 1000.0);
}

}  // namespace

int Sd3::match(const Checkpoint& file, const Value&) { return Sd3Names::find(file) ? 100 : 0; }

void Sd3::build(const Checkpoint& file, const Value& config, Blocks& graph) {
  const std::optional<Sd3Names> names = Sd3Names::find(file);
  if (!names)
    throw Error(HEDDLE_INVALID_ARGUMENT, file.path() + ": this is no Stable Diffusion 3 model");
  const Sd3Sizes sizes = read_sizes(file, config, *names);
  Sd3Builder(file, *names, sizes, graph).run(config.get<std::string>("part", ""));
  add_settings(sizes, graph);
  add_control_settings(graph, sizes.streams.hidden, sizes.streams.doubles, 0);
  graph.setting("tokens_model", Record().set("part", value_of("tokens")).value());
}

int Sd3Control::match(const Checkpoint& file, const Value&) {
  return Sd3Names::find_control(file) ? 100 : 0;
}

void Sd3Control::build(const Checkpoint& file, const Value& config, Blocks& graph) {
  const std::optional<Sd3Names> names = Sd3Names::find_control(file);
  if (!names)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                file.path() + ": this is no ControlNet of Stable Diffusion 3 or 3.5");
  const Sd3Sizes sizes = read_sizes(file, config, *names, true);
  const ControlBuilder control(file, names->prefix(), sizes.streams.hidden, graph);
  Sd3Builder(file, *names, sizes, graph).run(control);
  control.add_settings("sd3", sizes.streams.doubles, 0);
  const std::int64_t read = file.size(names->prefix() + "pos_embed_input.proj.weight", 1);
  // Those for 3 medium have a table of positions of their own, and are told nothing of the pooled
  // text; their hints are scaled without a shift.
  const bool is_first = sizes.channels > 0;
  graph.setting("latent_channels", is_first ? sizes.channels : read);
  graph.setting("hint_channels", read);
  graph.setting("latent_scale", kSd3LatentScale);
  graph.setting("latent_shift", is_first ? 0.0 : kSd3LatentShift);
  graph.setting("zero_pooled", is_first);
  if (sizes.streams.context_width > 0) graph.setting("context_width", sizes.streams.context_width);
  graph.setting("pooled_width", sizes.pooled_width);
  // The publisher's for edges was trained with 255 x / 2 + 1 / 2 of edges x as what its autoencoder
  // sees, which is 2 p - 1 of the hint p.
  constexpr double kCanny = 1;
  const std::string kind = names->prefix() + "control_type";
  if (!file.has(kind) || file.number(kind) != kCanny) return;
  graph.setting("hint_factor", 63.75);
  graph.setting("hint_offset", 0.75);
}

}  // namespace heddle::denoisers
