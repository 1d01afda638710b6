#include "zimage.h"

#include <deque>
#include <functional>

#include "model_patches.h"
#include "patches.h"
#include "plugins/blocks/slots.h"
#include "preview_factors.h"
#include "zimage_layers.h"
#include "zimage_names.h"
#include "zimage_patch.h"

namespace heddle::denoisers {
namespace {

constexpr NextDitKind kZImageKind{
    "z-image", "Qwen3 4B (CLIPLoader, type lumina2)", "adaLN_modulation.0", false, 32, 1, 1000, 256,
    3.0};
constexpr NextDitKind kLuminaKind{
    "lumina2", "Gemma 2 2B (CLIPLoader, type lumina2)", "adaLN_modulation.1", true, 1, 0, 1, 10000,
    6.0};

// The published Z-Image's heads of 128 turn 32, 48 and 48 of their elements with the three axes,
// Lumina 2's of 96 turn 32 with each.
std::array<std::int64_t, 3> axes_of(const Checkpoint& file, const Value& config, std::int64_t head,
                                    bool is_lumina) {
  std::array<std::int64_t, 3> axes{head / 4, head * 3 / 8, head * 3 / 8};
  if (is_lumina) axes = {head / 3, head / 3, head / 3};
  const Value given = config.field("axes_dims");
  for (std::uint32_t i = 0; i < given.count() && i < axes.size(); ++i)
    axes[i] = given.item(i).as<std::int64_t>();
  bool fits = axes[0] + axes[1] + axes[2] == head && (given.count() == 0 || given.count() == 3);
  for (const std::int64_t axis : axes) fits = fits && axis > 0 && axis % 2 == 0;
  if (!fits)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                file.path() + ": rotary axes " + blocks::shape_text({axes[0], axes[1], axes[2]}) +
                    " do not make up a head of size " + std::to_string(head) +
                    ": three even numbers are needed whose sum it is ('axes_dims').");
  return axes;
}

// Rows of queries, keys and values together are (heads + 2 of keys) of a head's size.
std::int64_t kv_heads_of(const Checkpoint& file, const ZImageNames& names, const ZImageSizes& s) {
  std::int64_t rows = 0;
  for (const Part& part : names.parts("context_refiner.0.attention.qkv.weight"))
    rows += file.size(part.tensor, 0);
  const std::int64_t keys = (rows - s.hidden) / 2, kv_heads = keys / s.head;
  if (kv_heads < 1 || 2 * kv_heads * s.head + s.hidden != rows || s.heads % kv_heads != 0)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                file.path() + ": " + std::to_string(rows) +
                    " rows of queries, keys and values do not divide into " +
                    std::to_string(s.heads) + " heads of " + std::to_string(s.head) +
                    " and fewer or as many of keys. The file is damaged or of another model.");
  return kv_heads;
}

ZImageSizes read_zimage_sizes(const Checkpoint& file, const Value& config,
                              const ZImageNames& names) {
  const auto size = [&](const char* name, std::uint32_t axis) {
    return file.size(names.one(name), axis);
  };
  ZImageSizes s{};
  s.hidden = size("cap_embedder.1.weight", 0);
  s.context_width = size("cap_embedder.1.weight", 1);
  s.head = size("context_refiner.0.attention.q_norm.weight", 0);
  s.mlp = size("context_refiner.0.feed_forward.w1.weight", 0);
  s.vector_width = size("t_embedder.mlp.2.weight", 0);
  s.channels = size("x_embedder.weight", 1) / kPatchArea;
  s.layers = names.count("layers");
  s.image_refiners = names.count("noise_refiner");
  s.text_refiners = names.count("context_refiner");
  if (s.head <= 0 || s.hidden % s.head != 0)
    throw Error(HEDDLE_INVALID_ARGUMENT, file.path() + ": a width of " + std::to_string(s.hidden) +
                                             " does not divide into heads of " +
                                             std::to_string(s.head));
  s.heads = s.hidden / s.head;
  s.kv_heads = kv_heads_of(file, names, s);
  s.axes = axes_of(file, config, s.head, names.is_lumina());
  s.eps = config.get<double>("norm_eps", 1e-5);
  return s;
}

// Builds the graph of one file.
class ZImageBuilder {
 public:
  ZImageBuilder(const Checkpoint& file, const ZImageNames& names, const NextDitKind& kind,
                const ZImageSizes& sizes, const Value& config, Blocks& graph)
      : file_(file),
        names_(names),
        kind_(kind),
        s_(sizes),
        config_(config),
        graph_(graph),
        layers_(file, names, kind, sizes, graph) {}

  void run() {
    const Source x = graph_.input("x", HEDDLE_INPUT_PER_STEP | HEDDLE_INPUT_BATCH);
    const Source timestep = graph_.input("timestep", HEDDLE_INPUT_PRECOMPUTED);
    const Source context =
        graph_.input("context", HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_BATCH);
    vector_ = embed_vector(timestep);
    add_rope(x, context);
    Source txt = embed_text(context), img = embed_image(x);
    begin_patches(x, img);
    for (int i = 0; i < s_.text_refiners; ++i)
      txt = add_layer("refine.text.", "context_refiner.", i, txt, false, false);
    for (int i = 0; i < s_.image_refiners; ++i) {
      img = add_layer("refine.image.", "noise_refiner.", i, img, true, true);
      each_patch([&](ZImagePatch& patch) { img = patch.after_refiner(i, img); });
    }
    Block join = graph_.add<ZImageJoin>("join");
    join.link(ZImageJoin::txt, txt).link(ZImageJoin::img, img);
    Source hidden = join[ZImageJoin::out];
    each_patch([&](ZImagePatch& patch) { patch.join(hidden); });
    for (int i = 0; i < s_.layers; ++i) {
      hidden = add_layer("layer.", "layers.", i, hidden, true, false);
      each_patch([&](ZImagePatch& patch) { hidden = patch.after_layer(i, hidden); });
    }
    graph_.output("out", add_final(hidden, x));
  }

 private:
  void begin_patches(const Source& x, const Source& img) {
    for (const ModelPatch& patch : told_patches_)
      of_patch(patch, [&] {
        patches_.emplace_back(file_, patch, kind_, s_, graph_).begin(x, img, {vector_, cos_, sin_});
      });
  }
  void each_patch(const std::function<void(ZImagePatch&)>& visit) {
    for (ZImagePatch& patch : patches_) of_patch(patch.told(), [&] { visit(patch); });
  }

  void linear(blocks::Slots& slots, const Weight& matrix, const Weight& bias,
              const std::string& module, std::int64_t out, std::int64_t in) const {
    layers_.linear(slots, matrix, bias, module, out, in);
  }

  Source embed_vector(const Source& timestep) {
    using B = ZImageVector;
    Block block = graph_.add<B>("embed.vector");
    block.link(B::timestep, timestep);
    block.set(B::time_scale, config_.get<double>("t_scale", kind_.time_scale));
    blocks::Slots slots(file_, block, "embed.vector");
    const std::string first = names_.one("t_embedder.mlp.0.weight");
    const std::int64_t inner = file_.size(first, 0), waves = file_.size(first, 1);
    linear(slots, B::time_in, B::time_in_bias, "t_embedder.mlp.0", inner, waves);
    linear(slots, B::time_out, B::time_out_bias, "t_embedder.mlp.2", s_.vector_width, inner);
    return block[B::out];
  }

  void add_rope(const Source& x, const Source& context) {
    using B = ZImageRope;
    Block block = graph_.add<B>("embed.rope");
    block.link(B::x, x).link(B::context, context);
    block.set(B::axis_0, s_.axes[0]).set(B::axis_1, s_.axes[1]).set(B::axis_2, s_.axes[2]);
    block.set(B::theta, config_.get<double>("rope_theta", kind_.theta));
    block.set(B::first, kind_.first).set(B::multiple, kind_.multiple);
    cos_ = block[B::cos], sin_ = block[B::sin];
  }

  // A row; gguf files leave out axes of one element.
  template <class Slot>
  void fill_padding(blocks::Slots& slots, const Slot& slot, const char* module) {
    if (kind_.multiple == 1) return;
    const std::vector<Part> parts = names_.parts(module);
    const std::string& tensor = parts.front().tensor;
    const bool is_vector = file_.has(tensor) && file_.info(tensor).rank == 1;
    slots.fill(slot, parts, is_vector ? Shape{s_.hidden} : Shape{1, s_.hidden});
  }

  Source embed_text(const Source& context) {
    using B = ZImageTextIn;
    Block block = graph_.add<B>("embed.text");
    block.link(B::context, context).set(B::eps, s_.eps).set(B::multiple, kind_.multiple);
    blocks::Slots slots(file_, block, "embed.text");
    slots.fill(B::norm, names_.parts("cap_embedder.0.weight"), {s_.context_width});
    linear(slots, B::weight, B::bias, "cap_embedder.1", s_.hidden, s_.context_width);
    fill_padding(slots, B::filling, "cap_pad_token");
    return block[B::out];
  }

  Source embed_image(const Source& x) {
    using B = ZImageImageIn;
    Block block = graph_.add<B>("embed.image");
    block.link(B::x, x).set(B::multiple, kind_.multiple);
    blocks::Slots slots(file_, block, "embed.image");
    linear(slots, B::weight, B::bias, "x_embedder", s_.hidden, s_.channels * kPatchArea);
    fill_padding(slots, B::filling, "x_pad_token");
    return block[B::out];
  }

  // path: of the blocks; at: what the tensors' names begin with, both but for the number. is_last:
  // its tokens are the last of the joint sequence, else the first.
  Source add_layer(const std::string& path, const std::string& at, int index, const Source& hidden,
                   bool is_modulated, bool is_last) const {
    const std::string number = std::to_string(index);
    return layers_.add(path + number, at + number + ".", hidden,
                       {vector_, cos_, sin_, is_modulated, is_last});
  }

  Source add_final(const Source& hidden, const Source& x) {
    using M = ZImageFinalModulation;
    using B = ZImageFinal;
    Block modulation = graph_.add<M>("final.modulation");
    modulation.link(M::vector, vector_);
    blocks::Slots mod_slots(file_, modulation, "final.modulation");
    linear(mod_slots, M::weight, M::bias, "final_layer.adaLN_modulation.1", s_.hidden,
           s_.vector_width);
    Block block = graph_.add<B>("final.block");
    block.link(B::hidden, hidden).link(B::mod, modulation[M::out]).link(B::x, x);
    block.set(B::multiple, kind_.multiple);
    blocks::Slots slots(file_, block, "final.block");
    linear(slots, B::weight, B::bias, "final_layer.linear", s_.channels * kPatchArea, s_.hidden);
    return block[B::out];
  }

  const Checkpoint& file_;
  const ZImageNames& names_;
  const NextDitKind& kind_;
  const ZImageSizes& s_;
  const Value& config_;
  Blocks& graph_;
  const ZImageLayers layers_;
  const std::vector<ModelPatch> told_patches_ = model_patches(config_);
  std::deque<ZImagePatch> patches_;
  Source vector_, cos_, sin_;
};

void add_settings(const ZImageSizes& s, const NextDitKind& kind, Blocks& graph) {
  graph.setting("family", kind.family);
  graph.setting("latent_channels", s.channels);
  graph.setting("latent_downscale", std::int64_t{8});
  add_preview_factors(LatentKind::flux, s.channels, graph);
  graph.setting("patch", std::int64_t{2});
  graph.setting("guidance_embedded", false);
  graph.setting("context_width", s.context_width);
  graph.setting("text_encoder", kind.text_encoder);
  // How noise levels are spaced when no node says otherwise, as ComfyUI does. `sampling`: the
  // output is the velocity of a straight flow. Its latents are FLUX's, which are those of nobody
  // who says nothing.
  graph.setting("sampling", "flow");
  graph.setting("noise_table", "discrete_flow");
  graph.setting("noise_shift", kind.shift);
}

int match_zimage(const Checkpoint& file, bool is_lumina) {
  const std::optional<ZImageNames> names = ZImageNames::find(file);
  return names && names->is_lumina() == is_lumina ? 100 : 0;
}

void build_zimage(const Checkpoint& file, const Value& config, const NextDitKind& kind,
                  Blocks& graph) {
  const std::optional<ZImageNames> names = ZImageNames::find(file);
  if (!names)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                file.path() + ": this is no model of the family " + kind.family);
  const ZImageSizes sizes = read_zimage_sizes(file, config, *names);
  ZImageBuilder(file, *names, kind, sizes, config, graph).run();
  add_settings(sizes, kind, graph);
  if (!names->is_lumina()) add_patched_settings(config, sizes.hidden, graph);
}

}  // namespace

int ZImage::match(const Checkpoint& file, const Value&) { return match_zimage(file, false); }
void ZImage::build(const Checkpoint& file, const Value& config, Blocks& graph) {
  build_zimage(file, config, kZImageKind, graph);
}

int Lumina2::match(const Checkpoint& file, const Value&) { return match_zimage(file, true); }
void Lumina2::build(const Checkpoint& file, const Value& config, Blocks& graph) {
  build_zimage(file, config, kLuminaKind, graph);
}

}  // namespace heddle::denoisers
