// Pictures that a text encoder sees: their sizes, and the pixels as its vision tower reads them.
// Sizes are worked out alike before a run and in it. One call's thread.
#pragma once

#include <memory_resource>
#include <vector>

#include <heddle/host_memory.hpp>
#include <heddle/node.hpp>

#include "plugins/blocks/resample.h"

namespace heddle::encoders {

// A picture of about `pixels` in all with the aspect of `from`, each side a multiple of `step`, as
// ComfyUI's nodes scale pictures that a model is shown. Throws where a side would be none.
blocks::GridSize size_of_area(const blocks::GridSize& from, std::int64_t pixels, std::int64_t step);
// The nearest size in whole tokens of `unit` pixels, within the least and the most pixels that the
// vision tower is used with.
blocks::GridSize size_in_units(const blocks::GridSize& from, std::int64_t unit);

// What a picture becomes, by areas, of which a tower with the setting "side" sees the middle: as
// many pixels as its square has, with the aspect kept, as ComfyUI shows Gemma 3 pictures. Then its
// shorter side is made as long as the square's. Throws where a side would be none.
blocks::GridSize square_size(const blocks::GridSize& from, std::int64_t side);

// The sides of an IMAGE's shape; throws with the port's name where it is none, or empty.
blocks::GridSize picture_size(const Shape& shape, const std::string& port);

// Red, green and blue of an IMAGE (B, H, W, C) in host memory in another size, by areas:
// (B, h, w, 3) f32 in host memory.
Tensor scaled_by_area(Context& ctx, const Tensor& image, const blocks::GridSize& to);
// The same by cubic convolution with antialiasing, as numbers (B, h, w, 3) that `memory` holds.
std::pmr::vector<float> resampled_colours(Context& ctx, const Tensor& image,
                                          const blocks::GridSize& to, HostMemory& memory);
// The first `count` of such pictures as a vision tower with these settings reads them: (count, h,
// w, 3) f32 on the call's device, less a mean and over a deviation: its own (pixel_mean,
// pixel_deviation), else those of CLIP for each colour. Resized between neighbours, but with
// "sees_bytes" by cubes with antialiasing, from bytes (truncated) to bytes, and with "side", one
// square alone, as square_size() says.
Tensor vision_pixels(Context& ctx, const Tensor& image, const blocks::GridSize& to,
                     const Value& settings, std::int64_t count = 1);

// What is taken from a picture's colours, and by what they are divided then: of settings as above.
struct ColourStatistics {
  float means[3], deviations[3];
};
ColourStatistics colour_statistics(const Value& settings);

// Bytes of host memory that both take at most.
std::uint64_t scaling_bytes(const Shape& image, const blocks::GridSize& to);

}  // namespace heddle::encoders
