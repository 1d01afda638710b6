// What some models read beside the point, channel for channel (their input "concat"): the latent of
// a picture, and with some where it is drawn anew. FLUX.1's Fill, Canny and Depth; Stable Diffusion
// for inpainting and pix2pix; of videos (video_concat.h) Wan. As ComfyUI gives it: resized to the
// point from the middle, in the model's units. One call's thread.
#pragma once

#include <optional>
#include <string>

#include "cond_scope.h"
#include "model_sampling.h"
#include "plugins/blocks/entry_shapes.h"

namespace heddle::samplers {

struct ConcatLayout {
  std::int64_t image = 0;        // channels of the latent
  std::int64_t downscale = 0;    // the mask has this square of pixels in each cell, a channel for
                                 // each of them; 0: no mask
  bool mask_first = false;       // a mask of one number a cell, 0 or 1, before the picture
  bool is_raw = false;           // the picture is in the autoencoder's own units
  std::int64_t video = 0;        // all channels, of a model of videos; 0: of pictures
  std::int64_t video_masks = 4;  // channels of the mask of its frames (setting concat_masks)
  bool mask_last = false;        // these are behind the latents (concat_mask_last), else before
  std::int64_t noised = 0;       // the first channel of a latent that is mixed with noise, by the
                                 // entry's noise_augmentation (concat_noised); 0: of none
  std::vector<std::vector<float>> always = {};  // concat_always: of a latent's channels what the
                                                // first frame has, the second and all others, in
                                                // the model's units, behind masks of zeros,
                                                // whatever an entry says; empty: as it says
  bool kept = false;      // concat_kept: there are masks alone, 1 where the latent's noise mask or
                          // the entry's concat_mask keeps frames
  std::string node = {};  // concat_node: the class that gives it, where nothing is drawn without;
                          // of models of videos
  std::int64_t levels = 0;  // of noise in a picture of pixels (noised_picture.h), and how that
  Betas betas = {};         // grows; 0: the picture is a latent

  std::int64_t channels() const {
    if (video > 0) return video;
    return image + (mask_first ? 1 : downscale * downscale);
  }
};
// None: a model that reads nothing of this. Throws where its settings ask for another number of
// channels than either of these.
std::optional<ConcatLayout> concat_layout(const Value& settings);

// Where it is put: the point's grid, and the box of it that is wanted, or all of it.
struct ConcatPlace {
  std::int64_t items = 1;
  Shape grid;
  std::optional<Box> box;
  bool is_negative = false;  // it is the negative conditioning's
  // Of a run: samples, in the model's units, and noise_mask, as NoiseMask has it for each item.
  // What models with the mask first are shown where the entry has no picture, or no mask.
  // Before a run: only whether there is a noise_mask.
  Value latent = {};
  std::uint64_t seed = 0;         // of the run
  std::vector<Shape> parts = {};  // of pictures and their sound the shapes of both
  // Of a video, with no area of a part of its frames.
  bool is_of_all_frames() const { return !box || box->size[0] == grid[0]; }
};
bool has_noise_mask(const ConcatPlace& place);
// (1 or items, channels, height, width), by what is told of an entry; items where the mask is
// first, or where the picture is one of pixels.
Shape concat_shape(const blocks::EntryShapes& entry, const ConcatLayout& layout,
                   const ConcatPlace& place);
// On the device of the call, f32. An entry without a picture has one of zeros, without a mask all
// is drawn anew; with the mask first, without a mask the picture is grey. Throws where the picture
// has other channels, and for the latent of a video where the model is none of videos.
Tensor concat_of(Context& ctx, const Value& entry, const ConcatLayout& layout,
                 const LatentFormat& format, const ConcatPlace& place);

// The row that an item of a batch gets, as ComfyUI spreads rows over another number of items.
std::int64_t spread_row(std::int64_t item, std::int64_t items, std::int64_t rows);

}  // namespace heddle::samplers
