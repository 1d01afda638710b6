#include "gemma4_vision_model.h"

#include <cmath>
#include <optional>
#include <string>

#include "matrix_limits.h"
#include "plugins/blocks/slots.h"

namespace heddle::encoders {
namespace {

// From the config.json of the published models, and how many tokens ComfyUI gives a picture, and a
// frame of a video.
constexpr std::int64_t kPooling = 3, kPictureTokens = 280, kFrameTokens = 70, kPadding = 0;
constexpr double kVisionEps = 1e-6;

constexpr std::string_view kTowerPixels = "patch_embedder.input_proj.weight",
                           kUnifiedPixels = "patch_dense.weight";
constexpr const char* kTowers[] = {"vision_model.", "model.vision_tower.", "vision_tower."};
constexpr const char* kUnified[] = {"vision_model.", "model.vision_embedder.", "vision_embedder."};
constexpr const char* kProjectors[] = {"multi_modal_projector.embedding_projection.weight",
                                       "model.embed_vision.embedding_projection.weight",
                                       "embed_vision.embedding_projection.weight"};

// Where a file has what sees pictures.
struct VisionPlace {
  std::string prefix, projector;
  bool is_tower;
};
std::optional<VisionPlace> vision_place(const Checkpoint& file) {
  for (const char* projector : kProjectors) {
    if (!file.has(projector)) continue;
    for (const char* prefix : kTowers)
      if (file.has(prefix + std::string(kTowerPixels))) return VisionPlace{prefix, projector, true};
    for (const char* prefix : kUnified)
      if (file.has(prefix + std::string(kUnifiedPixels)))
        return VisionPlace{prefix, projector, false};
  }
  return std::nullopt;
}

// The side of a square of pixels with three colours.
std::int64_t pixel_side(const Checkpoint& file, const std::string& matrix) {
  const std::int64_t numbers = file.size(matrix, 1);
  const auto side = std::int64_t(std::lround(std::sqrt(double(numbers) / 3)));
  if (side < 1 || 3 * side * side != numbers)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                file.path() + ": tensor '" + matrix + "' reads " + std::to_string(numbers) +
                    " numbers, which are no square of pixels with three colours. The file is "
                    "damaged or of another model.");
  return side;
}

class Gemma4VisionBuilder {
 public:
  Gemma4VisionBuilder(const Checkpoint& file, VisionPlace place, const Value& config, Blocks& graph)
      : file_(file),
        place_(std::move(place)),
        eps_(config.get<double>("rms_norm_eps", kVisionEps)),
        merge_(place_.is_tower ? config.get<std::int64_t>("pooling_kernel_size", kPooling) : 1),
        pixels_(place_.prefix + std::string(place_.is_tower ? kTowerPixels : kUnifiedPixels)),
        patch_(pixel_side(file, pixels_)),
        width_(file.size(pixels_, 0)),
        out_(file.size(place_.projector, 0)),
        graph_(graph) {
    if (merge_ < 1)
      throw Error(HEDDLE_INVALID_ARGUMENT, file.path() + ": pooling_kernel_size is " +
                                               std::to_string(merge_) + ", expected 1 or more");
  }

  void run() {
    const heddle::Source picture = graph_.input("picture", HEDDLE_INPUT_LOOP_INVARIANT);
    graph_.output("tokens", place_.is_tower ? tower(picture) : pixel_tokens(picture));
    graph_.setting("family", "gemma4_vision");
    graph_.setting("width", out_);
    graph_.setting("unit", patch_ * merge_);
    graph_.setting("picture_tokens", kPictureTokens);
    graph_.setting("frame_tokens", kFrameTokens);
    graph_.setting("token", kPadding);
    graph_.setting("counts_on", true);
    graph_.setting("sees_bytes", true);
    graph_.setting("pixel_mean", place_.is_tower ? 0.5 : 0.0);
    graph_.setting("pixel_deviation", place_.is_tower ? 0.5 : 1.0);
  }

 private:
  std::string name(const std::string& tail) const { return place_.prefix + tail; }

  heddle::Source tower(const heddle::Source& picture) {
    heddle::Source hidden = embed(picture);
    const std::int64_t head = file_.size(name("encoder.layers.0.self_attn.q_norm.weight"), 0);
    const auto [cos, sin] = rope(picture, head);
    const int layers = blocks::layer_count(file_, name("encoder.layers."));
    for (int i = 0; i < layers; ++i) hidden = layer(i, head, {hidden, cos, sin});
    return pool(picture, hidden);
  }

  heddle::Source embed(const heddle::Source& picture) {
    using B = Gemma4VisionEmbed;
    const std::string places = name("patch_embedder.position_embedding_table");
    Block block = graph_.add<B>("embed");
    block.link(B::picture, picture).set(B::patch, patch_).set(B::merge, merge_);
    blocks::Slots slots(file_, block, "embed");
    slots.fill(B::matrix, pixels_, {width_, 3 * patch_ * patch_});
    slots.fill(B::places, places, {2, file_.size(places, 1), width_});
    return block[B::out];
  }

  std::pair<heddle::Source, heddle::Source> rope(const heddle::Source& picture, std::int64_t head) {
    using B = Gemma4VisionRope;
    const std::int64_t rows =
        file_.size(name("encoder.layers.0.self_attn.q_proj.linear.weight"), 0);
    // A head's pairs are halved between columns and rows.
    if (head < 4 || head % 4 != 0 || rows % head != 0)
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  file_.path() + ": a vision tower with queries of width " + std::to_string(rows) +
                      " and heads of " + std::to_string(head) +
                      ": heads have to divide it, and 4 the heads. The file is damaged.");
    Block block = graph_.add<B>("rope");
    block.link(B::picture, picture).set(B::patch, patch_).set(B::merge, merge_).set(B::head, head);
    return {block[B::cos], block[B::sin]};
  }

  struct Given {
    heddle::Source hidden, cos, sin;
  };
  heddle::Source layer(int i, std::int64_t head, const Given& given) {
    using B = Gemma4VisionLayer;
    const std::string path = "layer." + std::to_string(i),
                      at = name("encoder.layers." + std::to_string(i) + ".");
    Block block = graph_.add<B>(path);
    block.link(B::hidden, given.hidden).link(B::cos, given.cos).link(B::sin, given.sin);
    block.set(B::eps, eps_);
    blocks::Slots slots(file_, block, path);
    const std::string gate = at + "mlp.gate_proj.linear.weight",
                      query = at + "self_attn.q_proj.linear.weight";
    const std::int64_t inner = file_.has(gate) ? file_.size(gate, 0) : 4 * width_,
                       rows = file_.has(query) ? file_.size(query, 0) : width_;
    const auto norm = [&](const Weight& slot, const char* module, std::int64_t width) {
      slots.fill(slot, at + module + ".weight", {width});
    };
    std::string limits;
    const bool is_limited = file_.has(at + "self_attn.q_proj.input_max");
    const auto matrix = [&](const Weight& slot, const char* module, Shape shape) {
      slots.fill(slot, at + module + ".linear.weight", shape);
      if (is_limited) limits += limits_text(file_, at + module);
    };
    matrix(B::q, "self_attn.q_proj", {rows, width_});
    matrix(B::k, "self_attn.k_proj", {rows, width_});
    matrix(B::v, "self_attn.v_proj", {rows, width_});
    matrix(B::proj, "self_attn.o_proj", {width_, rows});
    matrix(B::gate, "mlp.gate_proj", {inner, width_});
    matrix(B::up, "mlp.up_proj", {inner, width_});
    matrix(B::down, "mlp.down_proj", {width_, inner});
    norm(B::q_norm, "self_attn.q_norm", head);
    norm(B::k_norm, "self_attn.k_norm", head);
    norm(B::norm1, "input_layernorm", width_);
    norm(B::after1, "post_attention_layernorm", width_);
    norm(B::norm2, "pre_feedforward_layernorm", width_);
    norm(B::after2, "post_feedforward_layernorm", width_);
    block.set(B::limits, limits);
    return block[B::out];
  }

  heddle::Source pool(const heddle::Source& picture, const heddle::Source& hidden) {
    using B = Gemma4VisionPool;
    Block block = graph_.add<B>("pool");
    block.link(B::hidden, hidden).link(B::picture, picture);
    block.set(B::patch, patch_).set(B::merge, merge_).set(B::eps, eps_);
    blocks::Slots slots(file_, block, "pool");
    if (file_.has(name("std_bias"))) {
      slots.fill(B::mean, name("std_bias"), {width_});
      slots.fill(B::factor, name("std_scale"), {width_});
    }
    slots.fill(B::matrix, place_.projector, {out_, width_});
    return block[B::out];
  }

  heddle::Source pixel_tokens(const heddle::Source& picture) {
    using B = Gemma4PixelTokens;
    Block block = graph_.add<B>("pixels");
    block.link(B::picture, picture).set(B::patch, patch_).set(B::eps, eps_);
    blocks::Slots slots(file_, block, "pixels");
    const std::int64_t numbers = 3 * patch_ * patch_;
    const auto both = [&](const Weight& weight, const Weight& bias, const char* module,
                          Shape shape) {
      slots.fill(bias, name(std::string(module) + ".bias"), {shape[0]});
      slots.fill(weight, name(std::string(module) + ".weight"), shape);
    };
    both(B::norm1, B::norm1_bias, "patch_ln1", {numbers});
    both(B::pixels, B::pixels_bias, "patch_dense", {width_, numbers});
    both(B::norm2, B::norm2_bias, "patch_ln2", {width_});
    both(B::norm3, B::norm3_bias, "pos_norm", {width_});
    const std::string places = name("pos_embedding");
    slots.fill(B::places, places, {file_.has(places) ? file_.size(places, 0) : 1, 2, width_});
    slots.fill(B::matrix, place_.projector, {out_, width_});
    return block[B::out];
  }

  const Checkpoint& file_;
  const VisionPlace place_;
  const double eps_;
  const std::int64_t merge_;
  const std::string pixels_;
  const std::int64_t patch_, width_, out_;
  Blocks& graph_;
};

}  // namespace

int Gemma4Vision::match(const Checkpoint& file, const Value&) {
  return vision_place(file) ? 100 : 0;
}

void Gemma4Vision::build(const Checkpoint& file, const Value& config, Blocks& graph) {
  std::optional<VisionPlace> place = vision_place(file);
  if (!place)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                file.path() + ": there is nothing that Gemma 4 sees pictures with in this file");
  const Value part = config.field("vision_config"),
              &vision = part.is(HEDDLE_KIND_RECORD) ? part : config;
  Gemma4VisionBuilder(file, std::move(*place), vision, graph).run();
}

}  // namespace heddle::encoders
