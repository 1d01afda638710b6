// The model of graphs/low_memory.json: a FLUX of 24 equal blocks, its weights drawn from a seed,
// its widths those of the encoders and the autoencoder that ship with the repository. It draws
// nothing worth looking at; it is there to be larger than the memory it runs in.
#pragma once

#include "tests/e2e/flux_files.h"

namespace heddle::test {

inline constexpr const char* kLowMemoryFile = "diffusion_models/low_memory.safetensors";

inline FileTensors low_memory_model() {
  FileTensors model = flux_transformer({.hidden = 128,
                                        .head = 64,
                                        .mlp = 512,
                                        .doubles = 24,
                                        .singles = 0,
                                        .clip_width = 128,
                                        .t5_width = 256},
                                       Guidance::none, "BF16");
  fill_at_random(model, 24);
  return model;
}

}  // namespace heddle::test
