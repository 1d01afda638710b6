#include "bench_shape.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "chroma_bench.h"
#include "flux2_bench.h"
#include "flux3_bench.h"
#include "flux_bench.h"
#include "hunyuan_bench.h"
#include "krea2_bench.h"
#include "ltx2_bench.h"
#include "ltxv_bench.h"
#include "minimax_bench.h"
#include "qwen21_bench.h"
#include "qwen_bench.h"
#include "sd3_bench.h"
#include "seedvr_bench.h"
#include "unet_bench.h"
#include "wan_bench.h"
#include "zimage_bench.h"

namespace heddle::denoisers {
namespace {

std::string text(const char* format, auto... values) {
  std::string out(std::size_t(std::snprintf(nullptr, 0, format, values...)), ' ');
  std::snprintf(out.data(), out.size() + 1, format, values...);
  return out;
}

// Drawn as the model is: with a text of random numbers, and a second one when there are two sets.
std::string workflow(const BenchDrawing& s, const char* name, const heddle_bench_workflow& w) {
  const auto words = [&](const char* node, int seed) {
    return text(
        R"("%s": {"class_type": "RandomConditioning", "inputs": {"tokens": %lld, "width": %lld, "pooled_width": %lld, "seed": %d}},)",
        node, static_cast<long long>(s.tokens), static_cast<long long>(s.context),
        static_cast<long long>(s.pooled), seed);
  };
  const std::string latent = s.is_upscaled ? R"("shown", 2)"
                             : s.sound > 0 ? R"("both", 0)"
                                           : R"("size", 0)";
  const bool is_shown = s.is_upscaled || s.is_sharpened;
  return text(
             R"({"model": {"class_type": "UNETLoader", "inputs": {"unet_name": "%s.safetensors", "weight_dtype": "default"}},)",
             name) +
         words("text", 1) + words("other_text", 2) +
         text(R"("size": {"class_type": "%s", "inputs": {"width": %u, "height": %u%s%s}},)",
              s.frames > 0 ? s.video : "EmptySD3LatentImage", w.width, w.height,
              s.frames > 0 ? text(R"(, "length": %u)", s.frames).c_str() : "",
              s.makes_both ? "" : R"(, "batch_size": 1)") +
         (s.sound > 0
              ? text(
                    R"("sound": {"class_type": "EmptySD3LatentImage", "inputs": {"width": 64, "height": %u, "batch_size": 1}},)"
                    R"("both": {"class_type": "LTXVConcatAVLatent", "inputs": {"video_latent": ["size", 0], "audio_latent": ["sound", 0]}},)",
                    8 * s.sound)
              : "") +
         (s.is_upscaled
              ? text(
                    R"("small": {"class_type": "EmptyImage", "inputs": {"width": %u, "height": %u, "batch_size": 1, "color": 8421504}},)"
                    R"("shown": {"class_type": "SD_4XUpscale_Conditioning", "inputs": {"images": ["small", 0], "positive": ["text", 0], "negative": ["other_text", 0], "scale_ratio": 4.0, "noise_augmentation": 0.0}},)",
                    w.width / 4, w.height / 4)
              : "") +
         (s.is_sharpened
              ? R"("shown": {"class_type": "SeedVR2Conditioning", "inputs": {"model": ["model", 0], "vae_conditioning": ["size", 0]}},)"
              : "") +
         text(
             R"("sample": {"class_type": "KSampler", "inputs": {"model": ["model", 0], "positive": [%s], "negative": [%s],)"
             R"("latent_image": [%s], "seed": 1, "steps": %u, "cfg": %s, "sampler_name": "euler", "scheduler": "simple", "denoise": 1.0}},)",
             is_shown ? R"("shown", 0)" : R"("text", 0)",
             is_shown ? R"("shown", 1)" : R"("other_text", 0)", latent.c_str(), w.steps,
             w.sets == 2 ? "3.5" : "1.0") +
         (s.sound > 0 || s.makes_both
              ? R"("parts": {"class_type": "LTXVSeparateAVLatent", "inputs": {"av_latent": ["sample", 0]}},)"
              : "") +
         text(R"("end": {"class_type": "Discard", "inputs": {"value": ["%s", 0]}}})",
              s.sound > 0 || s.makes_both ? "parts" : "sample");
}

}  // namespace

void BenchTensors::linear(const std::string& module, std::int64_t rows, std::int64_t columns) {
  matrix(module, rows, columns);
  add(module + ".bias", {rows}, 0, 0.02);
}

void BenchTensors::matrix(const std::string& module, std::int64_t rows, std::int64_t columns) {
  add(module + ".weight", {rows, columns}, 0, 1 / std::sqrt(double(columns)));
}

void BenchTensors::filter(const std::string& module, std::int64_t rows, std::int64_t channels,
                          std::int64_t side) {
  add(module + ".weight", {rows, channels, side, side}, 0,
      1 / std::sqrt(double(channels * side * side)));
  add(module + ".bias", {rows}, 0, 0.02);
}

void BenchTensors::frame_filter(const std::string& module, std::int64_t rows, std::int64_t channels,
                                std::int64_t side) {
  add(module + ".weight", {rows, channels, 1, side, side}, 0,
      1 / std::sqrt(double(channels * side * side)));
  add(module + ".bias", {rows}, 0, 0.02);
}

void BenchTensors::add(const std::string& name, const Shape& shape, double mean, double deviation) {
  const heddle_bench_tensor tensor{
      sizeof tensor, file_.c_str(), name.c_str(), HEDDLE_BF16, std::uint32_t(shape.size()),
      shape.data(),  mean,          deviation};
  sink_.tensor(sink_.to, &tensor);
}

void describe_bench(const char* name, const BenchDrawing& usual,
                    const heddle_bench_request& request, const heddle_bench_sink& sink,
                    const std::function<void(BenchTensors&)>& add_tensors) {
  const auto given = [](std::uint32_t value, std::uint32_t otherwise) {
    return value != 0 ? value : otherwise;
  };
  heddle_bench_workflow w{};
  w.size = sizeof w;
  w.width = given(request.width, usual.side);
  w.height = given(request.height, usual.height > 0 ? usual.height : usual.side);
  w.steps = given(request.steps, usual.steps);
  w.sets = given(request.sets, usual.sets);
  if (request.frames != 0 && request.frames != usual.frames)
    throw Error(HEDDLE_UNSUPPORTED, usual.frames == 0
                                        ? text("%u frames: %s draws pictures", request.frames, name)
                                        : text("%u frames: %s is measured with %u", request.frames,
                                               name, usual.frames));
  if (w.width % 16 != 0 || w.height % 16 != 0 || std::max(w.width, w.height) > 16384)
    throw Error(HEDDLE_INVALID_ARGUMENT, text("a picture of %u x %u pixels: %s draws such as have "
                                              "sides that are multiples of 16, up to 16384",
                                              w.width, w.height, name));
  if (w.sets > 2)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                text("%u sets of inputs in a step: guidance has 1 or 2", w.sets));
  BenchTensors tensors(sink, std::string("diffusion_models/") + name + ".safetensors");
  add_tensors(tensors);
  const std::string json = workflow(usual, name, w);
  w.json = json.c_str();
  w.node = "sample";
  w.output = usual.sound > 0 || usual.makes_both ? "parts.video_latent" : "sample.LATENT";
  w.field = "samples";
  w.vary = "sample.seed";
  w.weight_dtype = "model.weight_dtype";
  sink.workflow(sink.to, &w);
}

const heddle_list* BenchShapes::list() {
  return descs<kFluxDevBench, kFluxSchnellBench, kTinyScenesBench, kQwenImageBench,
               kQwenLayeredBench, kZImageBench, kLumina2Bench, kFlux2DevBench, kFlux2Klein9Bench,
               kFlux2Klein4Bench, kFlux3KleinBench, kFlux3KleinBaseBench, kSd35LargeBench,
               kSd35MediumBench, kSd3MediumBench, kKrea2Bench, kQwen21Bench, kChromaBench,
               kRadianceBench, kSd15Bench, kSdxlBench, kLotusBench, kSdX4Bench, kWan13Bench,
               kWan14Bench, kWan5Bench, kLtxvBench, kLtxv13Bench, kLtx2Bench, kLtx23Bench,
               kLtx25Bench, kMinimaxBench, kHunyuan10Bench, kHunyuan15Bench, kSeedvr3Bench,
               kSeedvr7Bench>();
}

}  // namespace heddle::denoisers
