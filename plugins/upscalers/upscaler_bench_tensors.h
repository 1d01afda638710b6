// plugins/upscalers/upscaler_bench_tensors.h - names and shapes of the published upscalers, told to
// a sink of heddle.field.bench_shapes/0. `is_small`: the same with few channels and layers. Any
// thread.
#pragma once

#include <heddle/diffusion/bench_shapes.h>
#include <heddle/value.hpp>

#include <string>

namespace heddle::upscalers {

class UpscalerTensors {
 public:
  // sink and file outlive this object.
  UpscalerTensors(const heddle_bench_sink& sink, const char* file) : sink_(sink), file_(file) {}

  // Weights that keep the size of what goes through, and a small bias.
  void conv(const std::string& module, std::int64_t out, std::int64_t in,
            std::int64_t side = 3) const;
  void matrix(const std::string& module, std::int64_t out, std::int64_t in) const;
  void norm(const std::string& module, std::int64_t width) const;
  void add(const std::string& name, const Shape& shape, double mean, double deviation) const;

 private:
  const heddle_bench_sink& sink_;
  const char* file_;
};

void esrgan_tensors(const UpscalerTensors& tensors, bool is_small);  // RealESRGAN_x4plus
void span_tensors(const UpscalerTensors& tensors, bool is_small);
void swinir_tensors(const UpscalerTensors& tensors, bool is_small);  // of real pictures, medium
void hat_tensors(const UpscalerTensors& tensors, bool is_small);
void dat_tensors(const UpscalerTensors& tensors, bool is_small);

}  // namespace heddle::upscalers
