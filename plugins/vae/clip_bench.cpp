#include "plugins/vae/clip_bench.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace heddle::vae {
namespace {

// A cell of RandomLatent's latents.
constexpr std::uint32_t kCellSide = 8, kCellFrames = 4, kMostPixels = 16384;

}  // namespace

void ClipTensors::conv(const std::string& module, const Shape& shape) {
  double terms = 1;
  for (std::size_t axis = 1; axis < shape.size(); ++axis) terms *= double(shape[axis]);
  add(module + ".weight", shape, 0, 1 / std::sqrt(terms));
  table(module + ".bias", {shape[0]});
}

void ClipTensors::add(const std::string& name, const Shape& shape, double mean, double deviation) {
  const heddle_bench_tensor tensor{
      sizeof tensor, file_.c_str(), name.c_str(), HEDDLE_F32, std::uint32_t(shape.size()),
      shape.data(),  mean,          deviation};
  sink_.tensor(sink_.to, &tensor);
}

void describe_clip(const char* name, const ClipShape& shape, const heddle_bench_request& request,
                   const heddle_bench_sink& sink,
                   const std::function<void(ClipTensors&)>& add_tensors) {
  const ClipSize& usual = request.is_small != 0 ? shape.small : shape.published;
  const auto given = [](std::uint32_t value, std::uint32_t otherwise) {
    return value != 0 ? value : otherwise;
  };
  heddle_bench_workflow w{};
  w.size = sizeof w;
  w.width = given(request.width, usual.width);
  w.height = given(request.height, usual.height);
  w.steps = w.sets = 1;
  const std::uint32_t frames = given(request.frames, usual.frames), least = shape.step + 1,
                      most = kMostPixels - kMostPixels % shape.step - shape.step + 1;
  const auto number = [](auto value) { return std::to_string(value); };
  if (w.width % shape.side != 0 || w.height % shape.side != 0 ||
      std::max(w.width, w.height) > kMostPixels || frames % shape.step != 1 || frames < least ||
      frames > most)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                number(frames) + " frames of " + number(w.width) + " x " + number(w.height) +
                    " pixels: sides are multiples of " + number(shape.side) + ", up to " +
                    number(kMostPixels) + ", and frames one more than a multiple of " +
                    number(shape.step) + ", from " + number(least) + " to " + number(most));
  if (request.steps > 1 || request.sets > 1)
    throw Error(HEDDLE_INVALID_ARGUMENT, "a clip is decoded in one step of one set");
  const std::string file = std::string(name) + ".safetensors";
  ClipTensors tensors(sink, "vae/" + file);
  add_tensors(tensors);
  char json[1024];
  std::snprintf(
      json, sizeof json,
      R"({"vae": {"class_type": "VAELoader", "inputs": {"vae_name": "%s"}},)"
      R"("latent": {"class_type": "RandomLatent", "inputs": {"width": %u, "height": %u, "channels": %u, "length": %u, "seed": 1}},)"
      R"("decode": {"class_type": "VAEDecode", "inputs": {"samples": ["latent", 0], "vae": ["vae", 0]}},)"
      R"("end": {"class_type": "Discard", "inputs": {"value": ["decode", 0]}}})",
      file.c_str(), w.width / shape.side * kCellSide, w.height / shape.side * kCellSide,
      shape.channels, (frames - 1) / shape.step * kCellFrames + 1);
  w.json = json;
  w.node = "decode";
  w.output = "decode.IMAGE";
  w.field = "";
  w.vary = "latent.seed";
  sink.workflow(sink.to, &w);
}

}  // namespace heddle::vae
