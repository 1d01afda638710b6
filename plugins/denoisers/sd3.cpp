#include "sd3.h"

#include "dual_stream.h"
#include "flux_blocks.h"
#include "patches.h"
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
  std::int64_t channels, pooled_width, positions;
};

Sd3Sizes read_sizes(const Checkpoint& file, const Value& config, const Sd3Names& names) {
  const auto size = [&](std::string_view module, std::uint32_t axis) {
    return file.size(names.top(module, "weight").front().tensor, axis);
  };
  Sd3Sizes d{};
  StreamSizes& s = d.streams;
  s.hidden = size("x_embedder.proj", 0);
  d.channels = size("x_embedder.proj", 1);
  s.out_width = size("final_layer.linear", 0);
  s.in_width = d.channels * kPatchArea;
  s.context_width = size("context_embedder", 1);
  s.time_width = size("t_embedder.mlp.0", 1);
  d.pooled_width = size("y_embedder.mlp.0", 1);
  d.positions = file.size(names.positions(), 1);
  s.doubles = names.depth();
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
  std::int64_t side = 0;
  while (side * side < d.positions) ++side;
  if (side * side != d.positions)
    throw Error(HEDDLE_INVALID_ARGUMENT, file.path() + ": '" + names.positions() + "' has " +
                                             std::to_string(d.positions) +
                                             " positions, which are no square");
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

  void run() {
    const Source x = graph_.input("x", HEDDLE_INPUT_PER_STEP | HEDDLE_INPUT_BATCH);
    const Source timestep = graph_.input("timestep", HEDDLE_INPUT_PRECOMPUTED);
    const Source context =
        graph_.input("context", HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_BATCH);
    const Source y = graph_.input("y", HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_BATCH);
    const Source vector = embed_vector(timestep, y);
    Source txt = embed_text(context, x), img = embed_image(x);
    for (int i = 0; i < s_.doubles; ++i) add_joint(i, vector, img, txt);
    graph_.output("out", streams_.add_final(vector, img, x, {}));
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

  void add_joint(int index, const Source& vector, Source& img, Source& txt) {
    const std::string path = "double." + std::to_string(index);
    const FindModule find = inside(index);
    const bool is_last = index + 1 == s_.doubles,
               is_dual = names_.has(find.parts("x_block.attn2.qkv", "weight"));
    const Source img_mod = streams_.modulation(path + ".modulation.img", vector,
                                               find("x_block.adaLN_modulation.1"), is_dual ? 9 : 6);
    const Source txt_mod =
        streams_.modulation(path + ".modulation.txt", vector,
                            find("context_block.adaLN_modulation.1"), is_last ? 2 : 6);
    Block block = graph_.add<Joint>(path + ".block");
    block.link(Joint::img, img).link(Joint::txt, txt);
    block.link(Joint::img_mod, img_mod).link(Joint::txt_mod, txt_mod).set(Joint::heads, s_.heads);
    blocks::Slots slots(file_, block, path + ".block");
    fill_attention(slots, kPictureSlots, find, true);
    if (is_dual) fill_attention(slots, kSecondSlots, find, true);
    fill_attention(slots, kTextSlots, find, !is_last);
    const std::int64_t mlp = streams_.mlp_width(find("x_block.mlp.fc1")), d = s_.hidden;
    const auto linear = [&](const Weight& matrix, const Weight& bias, const char* module,
                            std::int64_t out, std::int64_t in) {
      DualStreams::linear(slots, matrix, bias, find(module), out, in);
    };
    linear(Joint::img_up, Joint::img_up_bias, "x_block.mlp.fc1", mlp, d);
    linear(Joint::img_down, Joint::img_down_bias, "x_block.mlp.fc2", d, mlp);
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
};

void add_settings(const Sd3Sizes& d, Blocks& graph) {
  graph.setting("family", "sd3");
  graph.setting("latent_channels", d.channels);
  graph.setting("latent_downscale", std::int64_t{8});
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
  Sd3Builder(file, *names, sizes, graph).run();
  add_settings(sizes, graph);
}

}  // namespace heddle::denoisers
