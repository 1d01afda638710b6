// SAM 3.1's tracker of videos (sam3.h): what it sees of a frame with its memory, and what it
// remembers of it (sam3_memory_blocks.h).
#include "attention_blocks.h"
#include "sam3_build.h"
#include "sam3_decoder.h"
#include "sam3_detector_blocks.h"
#include "sam3_memory_blocks.h"
#include "sam3_segment_blocks.h"
#include "sam3_trunk_blocks.h"

namespace heddle::detection {
namespace {

constexpr std::int64_t kMemoryHeads = 8;

std::optional<std::string> tracker_root(const Checkpoint& file) {
  for (const std::string root : {"tracker.model.", "tracker."})
    if (file.has(root + "output_valid_embed")) return root;
  return std::nullopt;
}

std::string needed_root(const Checkpoint& file) {
  if (std::optional<std::string> root = tracker_root(file)) return *std::move(root);
  throw Error(HEDDLE_NOT_FOUND,
              file.path() +
                  ": tensor 'tracker.model.output_valid_embed' is missing, of SAM 3.1's tracker of "
                  "videos. Take the whole checkpoint of SAM 3.1; the tracker of SAM 3 is not "
                  "supported.");
}

class Sam3TrackerBuilder {
 public:
  explicit Sam3TrackerBuilder(const Sam3Maker& maker)
      : maker_(maker),
        d_(maker.sizes()),
        root_(needed_root(maker.file())),
        t_(*sam3_tracker_sizes(maker.file())) {}

  void see(const Source& hidden) {
    Source levels[3];
    for (int i = 0; i < 3; ++i)
      levels[i] =
          maker_.level("tracker.level." + std::to_string(i), "propagation_convs", 2 - i, hidden);
    const Source remembered = with_memory(levels[2]);
    const Block slots = slot_tokens(levels[2]);
    const std::string at = root_ + "sam_mask_decoder.";
    Sam3Decoder decoder(maker_, "tracker.decoder.", at,
                        {slots[Sam3Slots::tokens], remembered, slots[Sam3Slots::places]});
    const Source tokens = decoder.tokens();
    const std::int64_t m = t_.slots, end = 2 * m + m * t_.masks;
    graph().output("objects", maker_.head("tracker.objects", at + "pred_obj_score_head", tokens,
                                          {.begin = 0, .end = m}, 1));
    graph().output("qualities", maker_.head("tracker.qualities", at + "iou_prediction_head", tokens,
                                            {.begin = m, .end = 2 * m}, t_.masks));
    add_sam3_pointers(maker_, "tracker.", root_ + "obj_ptr_proj", tokens,
                      {.begin = 2 * m, .end = end, .every = t_.masks});
    const Source pixels = decoder.pixels(levels[1], levels[0]);
    for (std::int64_t i = 0; i < t_.masks; ++i) {
      const std::string number = std::to_string(i);
      const Source codes =
          maker_.head("tracker.codes." + number, at + "output_hypernetworks_mlps." + number, tokens,
                      {.begin = 2 * m, .end = end, .every = t_.masks, .pick = i}, d_.channels / 8);
      Block mask = graph().add<MaskProduct>("tracker.made." + number);
      mask.link(MaskProduct::codes, codes).link(MaskProduct::pixels, pixels);
      graph().output(("mask." + number).c_str(), mask[MaskProduct::out]);
    }
  }

  void remember(const Source& hidden) {
    const Source grid = maker_.level("memory.level", "propagation_convs", 0, hidden);
    Block cells = graph().add<Sam3Cells>("memory.cells");
    cells.link(Sam3Cells::grid, grid);
    graph().output("cells", cells[Sam3Cells::cells]);
    Source x = on_grid(grid, smaller_masks());
    const std::string at = root_ + "maskmem_backbone.fuser.layers.";
    for (int i = 0; i < blocks::layer_count(maker_.file(), at); ++i)
      x = fuse("memory.fuse." + std::to_string(i), at + std::to_string(i) + ".", x);
    using B = Sam3Memory;
    Block memory = graph().add<B>("memory.made");
    memory.link(B::grid, x).link(B::absent, graph().input("absent", kSam3Input));
    blocks::Slots slots(maker_.file(), memory, "memory.made");
    slots.fill(B::table, root_ + "no_obj_embed_spatial", {t_.slots, d_.channels});
    graph().output("memory", memory[B::out]);
  }

  void mask_logits() {
    using B = Sam3MaskLogits;
    Block block = graph().add<B>("mask_logits");
    block.link(B::mask, graph().input("mask", kSam3Input));
    blocks::Slots slots(maker_.file(), block, "mask_logits");
    Sam3Maker::fill(slots, B::conv, B::conv_bias, root_ + "interactive_mask_downsample",
                    {1, 1, 4, 4});
    graph().output("logits", block[B::out]);
  }

 private:
  // What the layers of the memory's attention see.
  struct Remembered {
    Source cells, memory, past, places, cosines, sines;
  };

  Blocks& graph() const { return maker_.graph(); }

  Source with_memory(const Source& grid) const {
    Block cells = graph().add<Sam3Cells>("tracker.cells");
    cells.link(Sam3Cells::grid, grid);
    using P = Sam3MemoryPlaces;
    Block places = graph().add<P>("tracker.places");
    places.link(P::cells, cells[Sam3Cells::cells])
        .link(P::places, cells[Sam3Cells::places])
        .link(P::frames, graph().input("frames", kSam3Input))
        .link(P::ages, graph().input("ages", kSam3Input))
        .set(P::each, t_.slots);
    blocks::Slots slots(maker_.file(), places, "tracker.places");
    const std::int64_t c = d_.channels;
    slots.fill(P::times, root_ + "maskmem_tpos_enc", {t_.times, 1, 1, c});
    Sam3Maker::fill(slots, P::proj, P::proj_bias, root_ + "obj_ptr_tpos_proj", {c, c});
    Block rotation = graph().add<Sam3Rotation>("tracker.rotation");
    rotation.set(Sam3Rotation::side, d_.grid())
        .set(Sam3Rotation::head, c / kMemoryHeads)
        .set(Sam3Rotation::step, 1.0);
    const Remembered seen{cells[Sam3Cells::cells],           graph().input("memory", kSam3Input),
                          graph().input("past", kSam3Input), places[P::memory_places],
                          rotation[Sam3Rotation::cosines],   rotation[Sam3Rotation::sines]};
    Source x = places[P::start];
    const std::string at = root_ + "transformer.encoder.layers.";
    for (int i = 0; i < blocks::layer_count(maker_.file(), at); ++i)
      x = layer("tracker." + std::to_string(i), at + std::to_string(i) + ".", x, seen);
    Block normed = graph().add<Sam3Normed>("tracker.norm");
    normed.link(Sam3Normed::x, x).set(Sam3Normed::eps, d_.eps);
    blocks::Slots of_norm(maker_.file(), normed, "tracker.norm");
    Sam3Maker::fill(of_norm, Sam3Normed::norm, Sam3Normed::norm_bias,
                    root_ + "transformer.encoder.norm", {c});
    return normed[Sam3Normed::out];
  }

  Source layer(const std::string& path, const std::string& at, const Source& x,
               const Remembered& seen) const {
    const Source own = to_itself(path + ".self", at, x, seen),
                 both = to_memory(path + ".memory", at, own, seen);
    return maker_.feed(path + ".feed", at + "linear1", at + "linear2", at + "norm3", both,
                       {.norm_first = true, .gelu = true});
  }

  template <class B>
  void fill_attention(Block& block, const std::string& path, const std::string& at,
                      const std::string& norm) const {
    blocks::Slots slots(maker_.file(), block, path);
    const Shape square{d_.channels, d_.channels};
    Sam3Maker::fill(slots, B::norm, B::norm_bias, norm, {d_.channels});
    Sam3Maker::fill(slots, B::q, B::q_bias, at + "_q_proj", square);
    Sam3Maker::fill(slots, B::k, B::k_bias, at + "_k_proj", square);
    Sam3Maker::fill(slots, B::v, B::v_bias, at + "_v_proj", square);
    Sam3Maker::fill(slots, B::proj, B::proj_bias, at + "_out_proj", square);
  }

  Source to_itself(const std::string& path, const std::string& at, const Source& x,
                   const Remembered& seen) const {
    using B = Sam3TurnedAttend;
    Block block = graph().add<B>(path);
    block.link(B::x, x)
        .link(B::cosines, seen.cosines)
        .link(B::sines, seen.sines)
        .set(B::heads, kMemoryHeads)
        .set(B::eps, d_.eps);
    fill_attention<B>(block, path, at + "self_attn", at + "norm1");
    return block[B::out];
  }

  Source to_memory(const std::string& path, const std::string& at, const Source& x,
                   const Remembered& seen) const {
    using B = Sam3MemoryAttend;
    Block block = graph().add<B>(path);
    block.link(B::x, x)
        .link(B::cells, seen.cells)
        .link(B::memory, seen.memory)
        .link(B::past, seen.past)
        .link(B::memory_places, seen.places)
        .link(B::cosines, seen.cosines)
        .link(B::sines, seen.sines)
        .set(B::heads, kMemoryHeads)
        .set(B::eps, d_.eps);
    fill_attention<B>(block, path, at + "cross_attn", at + "norm2");
    blocks::Slots slots(maker_.file(), block, path);
    const Shape square{d_.channels, d_.channels};
    Sam3Maker::fill(slots, B::image_q, B::image_q_bias, at + "image_cross_attn_q_proj", square);
    Sam3Maker::fill(slots, B::image_k, B::image_k_bias, at + "image_cross_attn_k_proj", square);
    return block[B::out];
  }

  Block slot_tokens(const Source& grid) const {
    using B = Sam3Slots;
    const std::string at = root_ + "sam_mask_decoder.";
    Block block = graph().add<B>("tracker.slots");
    block.link(B::slots, graph().input("slots", kSam3Input)).link(B::grid, grid);
    blocks::Slots slots(maker_.file(), block, "tracker.slots");
    const std::int64_t c = d_.channels, m = t_.slots;
    slots.fill(B::waves, root_ + "image_pe_layer.positional_encoding_gaussian_matrix", {2, c / 2});
    slots.fill(B::object, at + "obj_score_token.weight", {m, c});
    slots.fill(B::quality, at + "iou_token.weight", {m, c});
    slots.fill(B::masks, at + "mask_tokens.weight", {m * t_.masks, c});
    slots.fill(B::used, root_ + "output_valid_embed", {m, c});
    slots.fill(B::unused, root_ + "output_invalid_embed", {m, c});
    return block;
  }

  // The masks as a grid of as many cells as the picture's.
  Source smaller_masks() const {
    constexpr int kStages = 4, kApart = 3;  // between a stage's convolution and the next one's
    const std::string at = root_ + "maskmem_backbone.mask_downsampler.encoder.";
    using B = Sam3MaskStage;
    Source x = graph().input("masks", kSam3Input);
    std::int64_t from = 2 * t_.slots;
    for (int i = 0; i < kStages; ++i) {
      const std::string path = "memory.masks." + std::to_string(i),
                        conv = at + std::to_string(kApart * i);
      Block block = graph().add<B>(path);
      block.link(B::masks, x);
      if (i == 0) block.link(B::trusted, graph().input("trusted", kSam3Input));
      blocks::Slots slots(maker_.file(), block, path);
      const std::int64_t to = maker_.file().size(conv + ".weight", 0);
      Sam3Maker::fill(slots, B::conv, B::conv_bias, conv, {to, from, 3, 3});
      Sam3Maker::fill(slots, B::norm, B::norm_bias, at + std::to_string(kApart * i + 1), {to});
      x = block[B::out];
      from = to;
    }
    return x;
  }

  Source on_grid(const Source& grid, const Source& masks) const {
    using B = Sam3MaskOnGrid;
    const std::string at = root_ + "maskmem_backbone.", last = at + "mask_downsampler.encoder.12";
    Block block = graph().add<B>("memory.grid");
    block.link(B::grid, grid).link(B::masks, masks);
    blocks::Slots slots(maker_.file(), block, "memory.grid");
    const std::int64_t c = d_.channels;
    Sam3Maker::fill(slots, B::seen, B::seen_bias, at + "pix_feat_proj", {c, c, 1, 1});
    Sam3Maker::fill(slots, B::last, B::last_bias, last,
                    {c, maker_.file().size(last + ".weight", 1), 1, 1});
    return block[B::out];
  }

  Source fuse(const std::string& path, const std::string& at, const Source& x) const {
    using B = Sam3Fuse;
    Block block = graph().add<B>(path);
    block.link(B::grid, x).set(B::eps, d_.eps);
    blocks::Slots slots(maker_.file(), block, path);
    const std::int64_t c = d_.channels, side = maker_.file().size(at + "dwconv.weight", 2),
                       inner = maker_.file().size(at + "pwconv1.weight", 0);
    Sam3Maker::fill(slots, B::filter, B::filter_bias, at + "dwconv", {c, 1, side, side});
    Sam3Maker::fill(slots, B::norm, B::norm_bias, at + "norm", {c});
    Sam3Maker::fill(slots, B::up, B::up_bias, at + "pwconv1", {inner, c});
    Sam3Maker::fill(slots, B::down, B::down_bias, at + "pwconv2", {c, inner});
    slots.fill(B::scale, at + "gamma", {c});
    return block[B::out];
  }

  const Sam3Maker& maker_;
  const Sam3Sizes& d_;
  const std::string root_;
  const Sam3TrackerSizes t_;
};

}  // namespace

std::optional<Sam3TrackerSizes> sam3_tracker_sizes(const Checkpoint& file) {
  const std::optional<std::string> root = tracker_root(file);
  if (!root) return std::nullopt;
  const std::string at = *root + "sam_mask_decoder.";
  const std::int64_t slots = file.size(at + "obj_score_token.weight", 0),
                     masks = file.size(at + "mask_tokens.weight", 0);
  if (slots < 1 || masks < slots || masks % slots != 0)
    throw Error(HEDDLE_INVALID_ARGUMENT, file.path() + ": tensor '" + at +
                                             "mask_tokens.weight' has " + std::to_string(masks) +
                                             " rows, expected a multiple of the " +
                                             std::to_string(slots) +
                                             " objects that the tracker follows at once. The file "
                                             "is damaged.");
  return Sam3TrackerSizes{slots, masks / slots, file.size(*root + "maskmem_tpos_enc", 0)};
}

void add_sam3_tracker(const Sam3Maker& maker, const Source& hidden) {
  Sam3TrackerBuilder(maker).see(hidden);
}

void add_sam3_memory(const Sam3Maker& maker, const Source& hidden) {
  Sam3TrackerBuilder(maker).remember(hidden);
}

void add_sam3_mask_logits(const Sam3Maker& maker) { Sam3TrackerBuilder(maker).mask_logits(); }

void add_sam3_pointers(const Sam3Maker& maker, const std::string& path, const std::string& at,
                       const Source& x, const Sam3Maker::Tokens& tokens) {
  using B = Sam3Product;
  const std::int64_t c = maker.sizes().channels;
  const Source pointers = maker.head(path + "pointers", at, x, tokens, c);
  Block absent = maker.graph().add<B>(path + "absent");
  absent.link(B::x, pointers);
  blocks::Slots slots(maker.file(), absent, path + "absent");
  Sam3Maker::fill(slots, B::matrix, B::added, needed_root(maker.file()) + "no_obj_ptr_linear",
                  {c, c});
  maker.graph().output("pointers", pointers);
  maker.graph().output("absent", absent[B::out]);
}

}  // namespace heddle::detection
