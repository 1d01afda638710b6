#include "plugins/upscalers/upscaler_bench.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>

#include "heddle/value.hpp"

namespace heddle::upscalers {
namespace {

constexpr const char* kFile = "upscale_models/esrgan-x4.safetensors";
constexpr std::int64_t kPictureColours = 3;

struct Size {
  std::int64_t width, growth;
  int depth;
};
constexpr Size kPublished{64, 32, 23}, kSmall{16, 8, 1};

// The tensors of RealESRGAN_x4plus.
class EsrganTensors {
 public:
  explicit EsrganTensors(const heddle_bench_sink& sink) : sink_(sink) {}

  void all(const Size& size) {
    conv("conv_first", size.width, kPictureColours);
    for (int i = 0; i < size.depth; ++i)
      for (int dense = 1; dense <= 3; ++dense)
        for (int c = 1; c <= 5; ++c)
          conv("body." + std::to_string(i) + ".rdb" + std::to_string(dense) + ".conv" +
                   std::to_string(c),
               c == 5 ? size.width : size.growth, size.width + (c - 1) * size.growth);
    for (const char* name : {"conv_body", "conv_up1", "conv_up2", "conv_hr"})
      conv(name, size.width, size.width);
    conv("conv_last", kPictureColours, size.width);
  }

 private:
  void conv(const std::string& module, std::int64_t out, std::int64_t in) {
    add(module + ".weight", {out, in, 3, 3}, 1 / std::sqrt(9 * double(in)));
    add(module + ".bias", {out}, 0.02);
  }
  void add(const std::string& name, const Shape& shape, double deviation) {
    const heddle_bench_tensor tensor{
        sizeof tensor, kFile, name.c_str(), HEDDLE_F32, std::uint32_t(shape.size()),
        shape.data(),  0,     deviation};
    sink_.tensor(sink_.to, &tensor);
  }
  const heddle_bench_sink& sink_;
};

heddle_status* make(const heddle_host*, const heddle_bench_shape_desc*,
                    const heddle_bench_request* request, const heddle_bench_sink* sink) {
  return guard([&] {
    const bool is_small = request->is_small != 0;
    const std::uint32_t side = is_small ? 32 : 512;
    heddle_bench_workflow w{};
    w.size = sizeof w;
    w.width = request->width != 0 ? request->width : side;
    w.height = request->height != 0 ? request->height : side;
    w.steps = w.sets = 1;
    if (std::max(w.width, w.height) > 4096)
      throw Error(HEDDLE_INVALID_ARGUMENT, "a picture of " + std::to_string(w.width) + " x " +
                                               std::to_string(w.height) +
                                               " pixels: sides are at most 4096");
    if (request->steps > 1 || request->sets > 1)
      throw Error(HEDDLE_INVALID_ARGUMENT, "a picture is upscaled in one step of one set");
    EsrganTensors(*sink).all(is_small ? kSmall : kPublished);
    char json[1024];
    std::snprintf(
        json, sizeof json,
        R"({"load": {"class_type": "UpscaleModelLoader", "inputs": {"model_name": "esrgan-x4.safetensors"}},)"
        R"("grey": {"class_type": "EmptyImage", "inputs": {"width": %u, "height": %u, "batch_size": 1, "color": 8421504}},)"
        R"("image": {"class_type": "ImageAddNoise", "inputs": {"image": ["grey", 0], "seed": 1, "strength": 0.5}},)"
        R"("upscale": {"class_type": "ImageUpscaleWithModel", "inputs": {"upscale_model": ["load", 0], "image": ["image", 0]}},)"
        R"("end": {"class_type": "Discard", "inputs": {"value": ["upscale", 0]}}})",
        w.width, w.height);
    w.json = json;
    w.node = "upscale";
    w.output = "upscale.IMAGE";
    w.field = "";
    w.vary = "image.seed";
    sink->workflow(sink->to, &w);
  });
}

constexpr heddle_bench_shape_desc kEsrganX4{sizeof(heddle_bench_shape_desc), "esrgan-x4",
                                            "Real-ESRGAN x4plus, 512x512 to 2048x2048", &make};

}  // namespace

const heddle_list* UpscalerBench::list() { return descs<kEsrganX4>(); }

}  // namespace heddle::upscalers
