// What tracks make of the latent of a video that begins with a picture. In host memory; pure.
#pragma once

#include "plugins/blocks/tracks.h"
#include "plugins/vae/wan_jobs.h"

namespace heddle::vae {

// The features of a place go along the tracks of ATI (arXiv 2505.22944), as ComfyUI has it.
struct TrackMixing {
  double temperature = 220;
  std::int64_t nearest = 2;
};
// latent: (C, F, h, w) in the model's units, of the video without tracks, in which it is changed;
// mask: (F, h, w), which is filled: how much of each place is a track's. tracks: in pixels of the
// video, each of up to 121 places that are spread over the video; what comes behind is not seen.
// REQUIRES: one track at least.
void mix_tracks(const WanJob& job, const blocks::TrackSet& tracks, const TrackMixing& mixing,
                float* latent, float* mask, std::pmr::memory_resource& memory);

// Wan-Move (arXiv 2512.08765): the cell of the first frame at which a track begins comes along, to
// each cell where the track is at the first of four frames of pixels. A track that is not seen at
// first takes the last cell along. latent: (C, F, h, w), in which it is changed.
void move_along(const WanJob& job, const blocks::Tracks& tracks, float strength, float* latent);

}  // namespace heddle::vae
