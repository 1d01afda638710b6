#include "plugins/upscalers/upscaler_bench.h"

#include <algorithm>
#include <cstdio>
#include <string>

#include "heddle/value.hpp"
#include "upscaler_bench_tensors.h"

namespace heddle::upscalers {
namespace {

// A picture of noise through the model of such a file.
heddle_status* make(const heddle_bench_request* request, const heddle_bench_sink* sink,
                    const char* name, std::uint32_t side,
                    void (*fill)(const UpscalerTensors&, bool is_small)) {
  return guard([&] {
    const bool is_small = request->is_small != 0;
    if (is_small) side = 32;
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
    const std::string file = std::string("upscale_models/") + name + ".safetensors";
    fill(UpscalerTensors(*sink, file.c_str()), is_small);
    char json[1024];
    std::snprintf(
        json, sizeof json,
        R"({"load": {"class_type": "UpscaleModelLoader", "inputs": {"model_name": "%s.safetensors"}},)"
        R"("grey": {"class_type": "EmptyImage", "inputs": {"width": %u, "height": %u, "batch_size": 1, "color": 8421504}},)"
        R"("image": {"class_type": "ImageAddNoise", "inputs": {"image": ["grey", 0], "seed": 1, "strength": 0.5}},)"
        R"("upscale": {"class_type": "ImageUpscaleWithModel", "inputs": {"upscale_model": ["load", 0], "image": ["image", 0]}},)"
        R"("end": {"class_type": "Discard", "inputs": {"value": ["upscale", 0]}}})",
        name, w.width, w.height);
    w.json = json;
    w.node = "upscale";
    w.output = "upscale.IMAGE";
    w.field = "";
    w.vary = "image.seed";
    sink->workflow(sink->to, &w);
  });
}

template <void (*kFill)(const UpscalerTensors&, bool), std::uint32_t kSide>
heddle_status* made(const heddle_host*, const heddle_bench_shape_desc* self,
                    const heddle_bench_request* request, const heddle_bench_sink* sink) {
  return make(request, sink, self->name, kSide, kFill);
}

constexpr heddle_bench_shape_desc kEsrganX4{sizeof(heddle_bench_shape_desc), "esrgan-x4",
                                            "Real-ESRGAN x4plus, 512x512 to 2048x2048",
                                            &made<esrgan_tensors, 512>},
    kSpanX4{sizeof(heddle_bench_shape_desc), "span-x4", "SPAN of 48 channels, 512x512 to 2048x2048",
            &made<span_tensors, 512>},
    kSwinIrX4{sizeof(heddle_bench_shape_desc), "swinir-x4",
              "SwinIR-M of real pictures, 256x256 to 1024x1024", &made<swinir_tensors, 256>},
    kHatX4{sizeof(heddle_bench_shape_desc), "hat-x4", "HAT, 256x256 to 1024x1024",
           &made<hat_tensors, 256>},
    kDatX4{sizeof(heddle_bench_shape_desc), "dat-x4",
           "DAT with windows of 16x16, as many tokens as its 8x32, 256x256 to 1024x1024",
           &made<dat_tensors, 256>};

}  // namespace

const heddle_list* UpscalerBench::list() {
  return descs<kEsrganX4, kSpanX4, kSwinIrX4, kHatX4, kDatX4>();
}

}  // namespace heddle::upscalers
