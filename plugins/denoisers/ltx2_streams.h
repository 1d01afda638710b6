// plugins/denoisers/ltx2_streams.h - what the graph of LTX 2 keeps of each of its streams while it
// is built (ltx2.cpp).
#pragma once

#include <optional>
#include <string>

#include <heddle/model.hpp>

#include "ltx2_sizes.h"

namespace heddle::denoisers {

// A rotary table.
struct Ltx2Table {
  Source cos, sin;
};
// What is alike of the two streams.
struct Ltx2Stream {
  std::string path;    // of its blocks: "video", "audio"
  std::string prefix;  // of its weights: "", "audio_"
  Ltx2Sizes size = {};
  Source latent = {}, noise = {}, most = {};  // inputs
  Source vector = {}, shared = {};            // of its noise levels
  Source text = {};                           // states
  std::optional<Source> text_shared = {};     // of 2.3
  Source cross_shared = {}, cross_gate = {};  // of the other's level
  Ltx2Table rope = {}, cross_rope = {};       // of its tokens
  Source hidden = {};
};

}  // namespace heddle::denoisers
