// plugins/vae/clip_bench.h - decoders of videos to be measured (heddle.field.bench_shapes/0): of a
// random latent, by the tensors of the published files. Any thread.
#pragma once

#include <heddle/diffusion/bench_shapes.h>
#include <heddle/plugin.hpp>

#include <cstdint>
#include <functional>
#include <string>

#include "heddle/value.hpp"

namespace heddle::vae {

// The tensors of a file, in f32, told to the sink one by one.
class ClipTensors {
 public:
  // sink outlives this object.
  ClipTensors(const heddle_bench_sink& sink, std::string file)
      : sink_(sink), file_(std::move(file)) {}

  // A filter (out, in, ...), whose results keep the size of what it is applied to, and its bias.
  void conv(const std::string& module, const Shape& shape);
  // A filter (out, in, 3, 3, 3).
  void cube(const std::string& module, std::int64_t out, std::int64_t in) {
    conv(module, {out, in, 3, 3, 3});
  }
  // The weight of a norm, by its full name.
  void scale(const std::string& name, const Shape& shape) { add(name, shape, 1, 0.02); }
  // Small numbers around 0, by its full name.
  void table(const std::string& name, const Shape& shape) { add(name, shape, 0, 0.02); }
  // A norm with a bias.
  void norm(const std::string& module, std::int64_t width) {
    scale(module + ".weight", {width});
    table(module + ".bias", {width});
  }

 private:
  void add(const std::string& name, const Shape& shape, double mean, double deviation);

  const heddle_bench_sink& sink_;
  std::string file_;
};

// What is decoded when nobody says otherwise.
struct ClipSize {
  std::uint32_t width, height, frames;  // pixels
};
struct ClipShape {
  std::uint32_t channels, side, step;  // of the latent; pixels and frames of a cell
  ClipSize published, small;
};

// Tells the sink the tensors of the file "vae/NAME.safetensors" and a workflow that decodes a clip.
// Throws at a request that the decoder does not take.
void describe_clip(const char* name, const ClipShape& shape, const heddle_bench_request& request,
                   const heddle_bench_sink& sink,
                   const std::function<void(ClipTensors&)>& add_tensors);

}  // namespace heddle::vae
