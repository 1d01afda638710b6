// plugins/denoisers/bench_shape.h - what the shapes to be measured of all families here have in
// common: how their tensors are drawn, and the workflow that draws a picture with them. Any thread.
#pragma once

#include <heddle/diffusion/bench_shapes.h>
#include <heddle/plugin.hpp>

#include <functional>
#include <string>

#include "heddle/value.hpp"

namespace heddle::denoisers {

// The tensors of a file, in bf16, told to the sink one by one.
class BenchTensors {
 public:
  // sink outlives this object.
  BenchTensors(const heddle_bench_sink& sink, std::string file)
      : sink_(sink), file_(std::move(file)) {}

  // Rows of a matrix keep the size of what they are multiplied with.
  void linear(const std::string& module, std::int64_t rows, std::int64_t columns);
  // The same without a bias.
  void matrix(const std::string& module, std::int64_t rows, std::int64_t columns);
  // A learned token, by its full name.
  void token(const std::string& name, std::int64_t width) { add(name, {1, width}, 0, 0.02); }
  // A convolution's filter (rows, channels, side, side) and its bias.
  void filter(const std::string& module, std::int64_t rows, std::int64_t channels,
              std::int64_t side);
  // A filter of one frame, (rows, channels, 1, side, side), and its bias.
  void frame_filter(const std::string& module, std::int64_t rows, std::int64_t channels,
                    std::int64_t side);
  // Small numbers around 0, by its full name.
  void table(const std::string& name, const Shape& shape) { add(name, shape, 0, 0.02); }
  // The weight of a norm, by its full name.
  void scale(const std::string& name, std::int64_t width) { add(name, {width}, 1, 0.02); }

 private:
  void add(const std::string& name, const Shape& shape, double mean, double deviation);

  const heddle_bench_sink& sink_;
  std::string file_;
};

// What is drawn when nobody says otherwise, and what the text is like.
struct BenchDrawing {
  std::int64_t tokens, context, pooled;  // of each text, and widths; pooled 0: there is none
  std::uint32_t side, steps, sets;       // pixels of a square picture, or of a video's width
  std::uint32_t height = 0, frames = 0;  // of a video; frames 0: it is a picture
  const char* video = "EmptyHunyuanLatentVideo";  // the node that makes its latent
  std::uint32_t sound = 0;   // frames of the latent of its sound, 128 numbers each; 0: it has none
  bool makes_both = false;   // that node makes the latent of the sound, too
  bool is_upscaled = false;  // the picture is a small one of a quarter of its sides, made larger
  // The conditioning is SeedVR2Conditioning's: the texts of the model's file, and the latent.
  bool is_sharpened = false;
};

// Tells the sink the tensors of the file "diffusion_models/NAME.safetensors" and a workflow that
// draws a picture with it: of random texts, one for each set. Throws at a request that the model
// does not take.
void describe_bench(const char* name, const BenchDrawing& usual,
                    const heddle_bench_request& request, const heddle_bench_sink& sink,
                    const std::function<void(BenchTensors&)>& add_tensors);

// The shapes of this plugin, as heddle.field.bench_shapes/0: what to draw at random to measure
// models without their files.
struct BenchShapes {
  static constexpr std::string_view kind = HEDDLE_BENCH_SHAPES;
  static const heddle_list* list();
};

}  // namespace heddle::denoisers
