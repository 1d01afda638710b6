// plugins/denoisers/ltx2_sizes.h - sizes of one stream of LTX 2, read off its tensors. Any thread.
#pragma once

#include <heddle/model.hpp>

#include <cstdint>
#include <string>

#include "ltxv_names.h"

namespace heddle::denoisers {

struct Ltx2Sizes {
  // width of hidden states, of the MLP within; channels: numbers of a token; text: width of the
  // states that are read; pieces: 6 of the modulation of a layer, of 2.3 9.
  std::int64_t width = 0, heads = 0, channels = 0, text = 0, mlp = 0, pieces = 0;
};

// prefix: of the weights, "" of the video, "audio_" of its sound. Throws where they are no sizes of
// such a model.
Ltx2Sizes read_ltx2_sizes(const Checkpoint& file, const LtxvNames& names, const std::string& prefix,
                          std::int64_t heads);

// Throws where a width does not divide into heads of pairs.
void check_ltx2_heads(const Checkpoint& file, std::int64_t width, std::int64_t heads);

}  // namespace heddle::denoisers
