// What models of videos read beside the point (concat_input.h): latents of videos that are given,
// in whole or in part, and of some models a mask that says which frames are: of four channels, one
// for each frame of pixels that a frame of the latent holds (Wan), or of one (HunyuanVideo 1.5). As
// ComfyUI gives it: 1 where a frame is given; in the model's units, resized from the middle.
// One call's thread.
#pragma once

#include "concat_input.h"

namespace heddle::samplers {

// (1 or items, layout.video, frames, height, width) f32, on the device of the call. The entry's
// concat_latent_image (B, n C, T, h, w), in the autoencoder's units, of n latents of C channels
// each: alone, where it has all the channels, else behind the mask, or on both sides of it, where
// concat_mask_index (int) says how many channels are before it. concat_mask (B, 1|4, T', h, w): 1
// where all is drawn anew; behind its last frame all is. Of a layout with a noised latent,
// noise_augmentation (a, 0 to 1) says that it is a times noise of the run's seed - 10 and
// min(1 - a, 3/4) times itself; 0: 3/4 of itself. Without a picture all is zeros. Throws
// where the picture has other channels or another number of frames than the point.
Tensor video_concat_of(Context& ctx, const Value& entry, const ConcatLayout& layout,
                       const LatentFormat& format, const ConcatPlace& place);

}  // namespace heddle::samplers
