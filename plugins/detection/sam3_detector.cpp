// SAM 3's detector (sam3_detector_blocks.h): what the picture's cells see of the prompt, the
// queries, and what these end as.
#include "attention_blocks.h"
#include "sam3_build.h"
#include "sam3_detector_blocks.h"

namespace heddle::detection {
namespace {

class Sam3DetectorBuilder {
 public:
  explicit Sam3DetectorBuilder(const Sam3Maker& maker) : maker_(maker), d_(maker.sizes()) {}

  void run(const Source& hidden) {
    for (int i = 0; i < 3; ++i)
      levels_[i] = maker_.level("detector.level." + std::to_string(i), "convs", 2 - i, hidden);
    Block cells = graph().add<Sam3Cells>("detector.cells");
    cells.link(Sam3Cells::grid, levels_[2]);
    places_ = cells[Sam3Cells::places];
    prompt_ = prompt(cells[Sam3Cells::cells]);
    memory_ = cells[Sam3Cells::cells];
    const std::string encoder = "detector.transformer.encoder.layers.";
    for (int i = 0; i < blocks::layer_count(maker_.file(), encoder); ++i)
      memory_ =
          encoder_layer("detector.encoder." + std::to_string(i), encoder + std::to_string(i) + ".",
                        memory_, {.places = places_, .memory = prompt_});
    decode();
    add_masks();
  }

 private:
  struct LayerSees {
    Source places = {}, memory = {}, memory_places = {};
  };

  Blocks& graph() const { return maker_.graph(); }

  // Its first attention alone adds the places to its queries.
  Source encoder_layer(const std::string& path, const std::string& at, const Source& x,
                       const LayerSees& sees) const {
    const std::int64_t heads = d_.detector_heads;
    const Source self = maker_.attend(path + ".self", at + "self_attn", at + "norm1", x,
                                      {.places = sees.places, .heads = heads, .norm_first = true});
    const Source cross = maker_.attend(path + ".cross", at + "cross_attn_image", at + "norm2", self,
                                       {.memory = sees.memory,
                                        .memory_places = sees.memory_places,
                                        .heads = heads,
                                        .norm_first = true});
    return maker_.feed(path + ".feed", at + "linear1", at + "linear2", at + "norm3", cross,
                       {.norm_first = true});
  }

  // The text and a token that has seen the picture.
  Source prompt(const Source& cells) const {
    const std::string at = "detector.geometry_encoder.";
    const std::int64_t c = d_.channels;
    Block first = graph().add<Sam3PromptToken>("detector.prompt.token");
    first.set(Sam3PromptToken::eps, d_.eps);
    blocks::Slots slots(maker_.file(), first, "detector.prompt.token");
    slots.fill(Sam3PromptToken::token, at + "cls_embed.weight", {1, c});
    Sam3Maker::fill(slots, Sam3PromptToken::proj, Sam3PromptToken::proj_bias, at + "final_proj",
                    {c, c});
    Sam3Maker::fill(slots, Sam3PromptToken::norm, Sam3PromptToken::norm_bias, at + "norm", {c});
    Source token = first[Sam3PromptToken::out];
    for (int i = 0; i < blocks::layer_count(maker_.file(), at + "encode."); ++i)
      token = encoder_layer("detector.prompt." + std::to_string(i),
                            at + "encode." + std::to_string(i) + ".", token,
                            {.memory = cells, .memory_places = places_});
    Block whole = graph().add<Sam3Prompt>("detector.prompt.whole");
    whole.link(Sam3Prompt::text, graph().input("text", kSam3Input))
        .link(Sam3Prompt::token, token)
        .set(Sam3Prompt::eps, d_.eps);
    blocks::Slots last(maker_.file(), whole, "detector.prompt.whole");
    Sam3Maker::fill(last, Sam3Prompt::proj, Sam3Prompt::proj_bias,
                    std::string(kSam3Words) + "resizer", {c, d_.text});
    Sam3Maker::fill(last, Sam3Prompt::norm, Sam3Prompt::norm_bias, at + "encode_norm", {c});
    return whole[Sam3Prompt::out];
  }

  void decode() {
    using B = Sam3Queries;
    Block begin = graph().add<B>("detector.queries");
    blocks::Slots slots(maker_.file(), begin, "detector.queries");
    const std::int64_t c = d_.channels;
    slots.fill(B::presence, at_ + "presence_token.weight", {1, c});
    slots.fill(B::table, at_ + "query_embed.weight", {d_.queries, c});
    slots.fill(B::points, at_ + "reference_points.weight", {d_.queries, 4});
    queries_ = begin[B::queries];
    Source anchors = begin[B::anchors];
    for (int i = 0; i < blocks::layer_count(maker_.file(), at_ + "layers."); ++i) {
      const std::string path = "detector.decoder." + std::to_string(i);
      queries_ = decoder_layer(path, at_ + "layers." + std::to_string(i) + ".",
                               anchored(path + ".anchors", anchors));
      anchors = maker_.head(path + ".move", at_ + "bbox_embed", queries_,
                            {1, 0, at_ + "norm", anchors}, 4);
    }
    Block boxes = graph().add<Sam3Boxes>("detector.boxes");
    boxes.link(Sam3Boxes::anchors, anchors);
    graph().output("boxes", boxes[Sam3Boxes::out]);
    graph().output("presence", maker_.head("detector.presence", at_ + "presence_token_head",
                                           queries_, {0, 1, at_ + "presence_token_out_norm"}, 1));
    graph().output("scores", scores());
  }

  Block anchored(const std::string& path, const Source& anchors) const {
    using B = Sam3Anchors;
    Block block = graph().add<B>(path);
    block.link(B::anchors, anchors).link(B::grid, levels_[2]);
    blocks::Slots slots(maker_.file(), block, path);
    const std::int64_t c = d_.channels, heads = d_.detector_heads;
    const auto two = [&](const Weight& first, const Weight& first_bias, const Weight& second,
                         const Weight& second_bias, const std::string& at, std::int64_t from,
                         std::int64_t to) {
      Sam3Maker::fill(slots, first, first_bias, at_ + at + ".layers.0", {c, from});
      Sam3Maker::fill(slots, second, second_bias, at_ + at + ".layers.1", {to, c});
    };
    two(B::first, B::first_bias, B::second, B::second_bias, "ref_point_head", 2 * c, c);
    two(B::x_first, B::x_first_bias, B::x_second, B::x_second_bias, "boxRPB_embed_x", 2, heads);
    two(B::y_first, B::y_first_bias, B::y_second, B::y_second_bias, "boxRPB_embed_y", 2, heads);
    return block;
  }

  Source decoder_layer(const std::string& path, const std::string& at, const Block& anchors) const {
    const std::int64_t heads = d_.detector_heads;
    const Source places = anchors[Sam3Anchors::places];
    const Source self = maker_.attend(path + ".self", at + "self_attn", at + "norm2", queries_,
                                      {.places = places, .heads = heads, .norm_first = false});
    const Source words =
        maker_.attend(path + ".words", at + "ca_text", at + "catext_norm", self,
                      {.places = places, .memory = prompt_, .heads = heads, .norm_first = false});
    const Source cross = maker_.attend(path + ".cross", at + "cross_attn", at + "norm1", words,
                                       {.places = places,
                                        .memory = memory_,
                                        .memory_places = places_,
                                        .bias = anchors[Sam3Anchors::bias],
                                        .heads = heads,
                                        .norm_first = false});
    return maker_.feed(path + ".feed", at + "linear1", at + "linear2", at + "norm3", cross,
                       {.norm_first = false});
  }

  Source scores() const {
    using B = Sam3Scores;
    const std::string at = "detector.dot_prod_scoring.", mlp = at + "prompt_mlp.";
    Block block = graph().add<B>("detector.scores");
    block.link(B::queries, queries_).link(B::prompt, prompt_).set(B::eps, d_.eps);
    blocks::Slots slots(maker_.file(), block, "detector.scores");
    const std::int64_t c = d_.channels, inner = maker_.file().size(mlp + "layers.0.weight", 0);
    Sam3Maker::fill(slots, B::norm, B::norm_bias, at_ + "norm", {c});
    Sam3Maker::fill(slots, B::up, B::up_bias, mlp + "layers.0", {inner, c});
    Sam3Maker::fill(slots, B::down, B::down_bias, mlp + "layers.1", {c, inner});
    Sam3Maker::fill(slots, B::out_norm, B::out_norm_bias, mlp + "out_norm", {c});
    Sam3Maker::fill(slots, B::query, B::query_bias, at + "hs_proj", {c, c});
    Sam3Maker::fill(slots, B::text, B::text_bias, at + "prompt_proj", {c, c});
    return block[B::out];
  }

  Source pixels(const std::string& path, int stage, const Source& above, const Source& below,
                const std::string& last) const {
    using B = Sam3Pixels;
    const std::string at = "detector.segmentation_head.", number = std::to_string(stage);
    Block block = graph().add<B>(path);
    block.link(B::above, above).link(B::below, below).set(B::eps, d_.eps);
    blocks::Slots slots(maker_.file(), block, path);
    const std::int64_t c = d_.channels;
    Sam3Maker::fill(slots, B::conv, B::conv_bias, at + "pixel_decoder.conv_layers." + number,
                    {c, c, 3, 3});
    Sam3Maker::fill(slots, B::norm, B::norm_bias, at + "pixel_decoder.norms." + number, {c});
    if (!last.empty()) Sam3Maker::fill(slots, B::last, B::last_bias, at + last, {c, c, 1, 1});
    return block[B::out];
  }

  void add_masks() const {
    const std::string at = "detector.segmentation_head.";
    const Source seen =
        maker_.attend("detector.pixels.words", at + "cross_attend_prompt", at + "cross_attn_norm",
                      memory_, {.memory = prompt_, .heads = d_.detector_heads, .norm_first = true});
    const Source middle = pixels("detector.pixels.0", 0, seen, levels_[1], "");
    const Source fine = pixels("detector.pixels.1", 1, middle, levels_[0], "instance_seg_head");
    const Source codes = maker_.head("detector.codes", at + "mask_predictor.mask_embed", queries_,
                                     {1, 0, at_ + "norm"}, d_.channels);
    Block masks = graph().add<MaskProduct>("detector.masks");
    masks.link(MaskProduct::codes, codes).link(MaskProduct::pixels, fine);
    graph().output("masks", masks[MaskProduct::out]);
  }

  const Sam3Maker& maker_;
  const Sam3Sizes& d_;
  const std::string at_ = "detector.transformer.decoder.";
  Source levels_[3], places_, prompt_, memory_, queries_;
};

}  // namespace

void add_sam3_detector(const Sam3Maker& maker, const Source& hidden) {
  Sam3DetectorBuilder(maker).run(hidden);
}

}  // namespace heddle::detection
