// SAM 3's mask decoder for prompts of a picture (sam3_segment_blocks.h): that of the tracker, or of
// SAM 3.1 the one for pictures beside it.
#include "attention_blocks.h"
#include "sam3_build.h"
#include "sam3_decoder.h"
#include "sam3_segment_blocks.h"

namespace heddle::detection {
namespace {

constexpr std::int64_t kMaskTokens = 4;

// Where a file has these parts.
struct SegmenterNames {
  std::string decoder, prompts, past, convs, pointer;
};

std::optional<SegmenterNames> segmenter_names(const Checkpoint& file) {
  for (const std::string root : {"tracker.model.", "tracker."}) {
    if (file.has(root + "interactive_sam_mask_decoder.mask_tokens.weight"))
      return SegmenterNames{root + "interactive_sam_mask_decoder.",
                            root + "interactive_sam_prompt_encoder.",
                            root + "interactivity_no_mem_embed", "interactive_convs",
                            root + "interactive_obj_ptr_proj"};
    if (file.has(root + "sam_mask_decoder.mask_tokens.weight"))
      return SegmenterNames{root + "sam_mask_decoder.", root + "sam_prompt_encoder.",
                            root + "no_mem_embed", "sam2_convs", root + "obj_ptr_proj"};
  }
  return std::nullopt;
}

class Sam3SegmenterBuilder {
 public:
  Sam3SegmenterBuilder(const Sam3Maker& maker, SegmenterNames names)
      : maker_(maker), d_(maker.sizes()), names_(std::move(names)) {}

  // Of a pointer only what follows things in videos reads: masks are left out.
  void run(const Source& hidden, bool points) {
    Source levels[3];
    for (int i = points ? 2 : 0; i < 3; ++i)
      levels[i] = maker_.level("segmenter.level." + std::to_string(i), names_.convs, 2 - i, hidden);
    const Source cells = mask_prompt(levels[2]);
    const Block prompt = point_prompt(levels[2]);
    Sam3Decoder decoder(maker_, "segmenter.", names_.decoder,
                        {prompt[Sam3Points::tokens], cells, prompt[Sam3Points::places]});
    tokens_ = decoder.tokens();
    graph().output("object", maker_.head("segmenter.object", names_.decoder + "pred_obj_score_head",
                                         tokens_, {0, 1}, 1));
    if (points) return add_sam3_pointers(maker_, "segmenter.", names_.pointer, tokens_, {2, 3});
    graph().output("qualities",
                   maker_.head("segmenter.qualities", names_.decoder + "iou_prediction_head",
                               tokens_, {1, 2}, kMaskTokens));
    const Source pixels = decoder.pixels(levels[1], levels[0]);
    for (std::int64_t i = 0; i < kMaskTokens; ++i) add_mask(i, pixels);
  }

 private:
  Blocks& graph() const { return maker_.graph(); }

  Source mask_prompt(const Source& grid) const {
    using B = Sam3MaskPrompt;
    const std::string at = names_.prompts + "mask_downscaling.";
    Block block = graph().add<B>("segmenter.mask");
    block.link(B::grid, grid)
        .link(B::mask, graph().input("mask", kSam3Input | HEDDLE_INPUT_OPTIONAL));
    blocks::Slots slots(maker_.file(), block, "segmenter.mask");
    const std::int64_t c = d_.channels, fine = maker_.file().size(at + "0.weight", 0),
                       middle = maker_.file().size(at + "3.weight", 0);
    slots.fill(B::no_past, names_.past, {1, 1, c});
    slots.fill(B::no_mask, names_.prompts + "no_mask_embed.weight", {1, c});
    Sam3Maker::fill(slots, B::first, B::first_bias, at + "0", {fine, 1, 2, 2});
    Sam3Maker::fill(slots, B::first_norm, B::first_norm_bias, at + "1", {fine});
    Sam3Maker::fill(slots, B::second, B::second_bias, at + "3", {middle, fine, 2, 2});
    Sam3Maker::fill(slots, B::second_norm, B::second_norm_bias, at + "4", {middle});
    Sam3Maker::fill(slots, B::last, B::last_bias, at + "6", {c, middle, 1, 1});
    return block[B::out];
  }

  Block point_prompt(const Source& grid) const {
    using B = Sam3Points;
    Block block = graph().add<B>("segmenter.points");
    block.link(B::points, graph().input("points", kSam3Input))
        .link(B::kinds, graph().input("kinds", kSam3Input))
        .link(B::grid, grid);
    blocks::Slots slots(maker_.file(), block, "segmenter.points");
    const std::int64_t c = d_.channels;
    slots.fill(B::waves, names_.prompts + "pe_layer.positional_encoding_gaussian_matrix",
               {2, c / 2});
    const Weight* const kinds[] = {&B::kind_0, &B::kind_1, &B::kind_2, &B::kind_3};
    for (int i = 0; i < 4; ++i)
      slots.fill(*kinds[i], names_.prompts + "point_embeddings." + std::to_string(i) + ".weight",
                 {1, c});
    slots.fill(B::no_point, names_.prompts + "not_a_point_embed.weight", {1, c});
    slots.fill(B::object, names_.decoder + "obj_score_token.weight", {1, c});
    slots.fill(B::quality, names_.decoder + "iou_token.weight", {1, c});
    slots.fill(B::masks, names_.decoder + "mask_tokens.weight", {kMaskTokens, c});
    return block;
  }

  void add_mask(std::int64_t index, const Source& pixels) const {
    const std::string number = std::to_string(index);
    const Source code = maker_.head("segmenter.code." + number,
                                    names_.decoder + "output_hypernetworks_mlps." + number, tokens_,
                                    {2 + index, 3 + index}, d_.channels / 8);
    Block mask = graph().add<MaskProduct>("segmenter.made." + number);
    mask.link(MaskProduct::codes, code).link(MaskProduct::pixels, pixels);
    graph().output(("mask." + number).c_str(), mask[MaskProduct::out]);
  }

  const Sam3Maker& maker_;
  const Sam3Sizes& d_;
  const SegmenterNames names_;
  Source tokens_;
};

}  // namespace

bool has_sam3_segmenter(const Checkpoint& file) { return segmenter_names(file).has_value(); }

void add_sam3_segmenter(const Sam3Maker& maker, const Source& hidden, bool points) {
  std::optional<SegmenterNames> names = segmenter_names(maker.file());
  if (!names)
    throw Error(HEDDLE_NOT_FOUND,
                maker.file().path() +
                    ": tensor 'tracker.model.sam_mask_decoder.mask_tokens.weight' is missing, of "
                    "which masks of points, boxes and masks are made. The file is incomplete.");
  Sam3SegmenterBuilder(maker, *std::move(names)).run(hidden, points);
}

}  // namespace heddle::detection
