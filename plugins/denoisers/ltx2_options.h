// plugins/denoisers/ltx2_options.h - what of LTX 2 is not read off the tensors. In brackets the
// names of diffusers, where they differ from the publishers'. Any thread.
#pragma once

#include "ltx2_connectors.h"

#include <heddle/model.hpp>

#include <array>
#include <cstdint>

namespace heddle::denoisers {

// As published where neither config says otherwise.
struct Ltx2Options {
  std::int64_t heads = 32;        // num_attention_heads
  std::int64_t audio_heads = 32;  // audio_num_attention_heads
  double eps = 1e-6;              // norm_eps
  double theta = 10000;           // positional_embedding_theta (rope_theta)
  bool is_split = true;           // rope_type "split"; else "interleaved"
  // Seconds and pixels: positional_embedding_max_pos (pos_embed_max_pos, base_height, base_width),
  // audio_positional_embedding_max_pos (audio_pos_embed_max_pos)
  std::array<double, 3> most{20, 2048, 2048};
  double audio_most = 20;
  // av_ca_timestep_scale_multiplier (cross_attn_timestep_scale_multiplier): noise levels in [0, 1]
  // are multiplied by it for the gates between the streams.
  double gate_scale = 1000;
  Ltx2ConnectorOptions connectors = {};  // where the file has them
};

// config: of a folder, or empty. Throws where a number is none that a model can have.
Ltx2Options read_ltx2_options(const Checkpoint& file, const Value& config);

}  // namespace heddle::denoisers
