// plugins/denoisers/widening.h - LoRAs whose product has more columns than the first layer of the
// latent: FLUX.1's Canny and Depth, by which it reads a picture beside the point. The layer stays
// as it is; what the product makes of latent and picture side by side is added to its result. Who
// applies one joins the factors to the model's file, and builds the model anew:
//
// widened         list of records: prefix, down, up (names of the factors behind it), strength
//
// Used while a model is built; one call's thread.
#pragma once

#include <string>
#include <vector>

#include <heddle/model.hpp>

namespace heddle::denoisers {

struct Widening {
  std::string down, up;
  double strength = 1;
};
std::vector<Widening> widenings(const Value& config);

// Numbers of a token that they read beside `width`, which the layer itself reads. Throws where they
// do not read as many.
std::int64_t read_beside(const Checkpoint& file, const std::vector<Widening>& all,
                         std::int64_t width);

// What a model says that can be widened: of which tensor, and what it was built of.
void add_widened_settings(const Value& config, const std::string& tensor, Blocks& graph);

}  // namespace heddle::denoisers
