#include "flux_bench.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "heddle/value.hpp"

namespace heddle::denoisers {
namespace {

// FLUX.1 as Black Forest Labs published it: model_index of FLUX.1-dev and -schnell, and the files'
// own headers.
struct FluxShape {
  std::int64_t hidden, head, mlp;
  int doubles, singles;
  std::int64_t context, pooled, tokens;  // widths of both texts, and how long the long one is
  bool is_guided;
  std::uint32_t side, steps, sets;  // what is usual
};
constexpr FluxShape kDev{3072, 128, 12288, 19, 38, 4096, 768, 512, true, 1024, 8, 1};
constexpr FluxShape kSchnell{3072, 128, 12288, 19, 38, 4096, 768, 256, false, 1024, 4, 1};
// The model that comes with heddle.
constexpr FluxShape kTiny{256, 64, 1024, 3, 6, 256, 128, 64, false, 256, 8, 2};

constexpr std::int64_t kTokenWidth = 64, kTimeWidth = 256;

// The same family at a size for plain loops.
FluxShape small_of(FluxShape shape) {
  return {128, 64, 256, 2, 2, 64, 48, 16, shape.is_guided, 64, 2, shape.sets};
}

class Tensors {
 public:
  Tensors(const heddle_bench_sink& sink, std::string file) : sink_(sink), file_(std::move(file)) {}

  // Rows of a matrix keep the size of what they are multiplied with.
  void linear(const std::string& module, std::int64_t rows, std::int64_t columns) {
    add(module + ".weight", {rows, columns}, 0, 1 / std::sqrt(double(columns)));
    add(module + ".bias", {rows}, 0, 0.02);
  }
  void scale(const std::string& name, std::int64_t width) { add(name, {width}, 1, 0.02); }

 private:
  void add(const std::string& name, const Shape& shape, double mean, double deviation) {
    const heddle_bench_tensor tensor{
        sizeof tensor, file_.c_str(), name.c_str(), HEDDLE_BF16, std::uint32_t(shape.size()),
        shape.data(),  mean,          deviation};
    sink_.tensor(sink_.to, &tensor);
  }

  const heddle_bench_sink& sink_;
  std::string file_;
};

void add_tensors(const FluxShape& s, Tensors& tensors) {
  const auto embedder = [&](const std::string& name, std::int64_t width) {
    tensors.linear(name + ".in_layer", s.hidden, width);
    tensors.linear(name + ".out_layer", s.hidden, s.hidden);
  };
  tensors.linear("img_in", s.hidden, kTokenWidth);
  tensors.linear("txt_in", s.hidden, s.context);
  embedder("time_in", kTimeWidth);
  embedder("vector_in", s.pooled);
  if (s.is_guided) embedder("guidance_in", kTimeWidth);
  for (int i = 0; i < s.doubles; ++i)
    for (const char* stream : {"img_", "txt_"}) {
      const std::string at = "double_blocks." + std::to_string(i) + "." + stream;
      tensors.linear(at + "mod.lin", 6 * s.hidden, s.hidden);
      tensors.linear(at + "attn.qkv", 3 * s.hidden, s.hidden);
      tensors.scale(at + "attn.norm.query_norm.scale", s.head);
      tensors.scale(at + "attn.norm.key_norm.scale", s.head);
      tensors.linear(at + "attn.proj", s.hidden, s.hidden);
      tensors.linear(at + "mlp.0", s.mlp, s.hidden);
      tensors.linear(at + "mlp.2", s.hidden, s.mlp);
    }
  for (int i = 0; i < s.singles; ++i) {
    const std::string at = "single_blocks." + std::to_string(i) + ".";
    tensors.linear(at + "modulation.lin", 3 * s.hidden, s.hidden);
    tensors.linear(at + "linear1", 3 * s.hidden + s.mlp, s.hidden);
    tensors.linear(at + "linear2", s.hidden, s.hidden + s.mlp);
    tensors.scale(at + "norm.query_norm.scale", s.head);
    tensors.scale(at + "norm.key_norm.scale", s.head);
  }
  tensors.linear("final_layer.adaLN_modulation.1", 2 * s.hidden, s.hidden);
  tensors.linear("final_layer.linear", kTokenWidth, s.hidden);
}

std::string text(const char* format, auto... values) {
  std::string out(std::size_t(std::snprintf(nullptr, 0, format, values...)), ' ');
  std::snprintf(out.data(), out.size() + 1, format, values...);
  return out;
}

// Drawn as the model is: with a text of random numbers, and a second one when there are two sets.
std::string workflow(const FluxShape& s, const std::string& name, const heddle_bench_workflow& w) {
  const auto words = [&](const char* node, int seed) {
    return text(
        R"("%s": {"class_type": "RandomConditioning", "inputs": {"tokens": %lld, "width": %lld, "pooled_width": %lld, "seed": %d}},)",
        node, static_cast<long long>(s.tokens), static_cast<long long>(s.context),
        static_cast<long long>(s.pooled), seed);
  };
  return text(
             R"({"model": {"class_type": "UNETLoader", "inputs": {"unet_name": "%s.safetensors", "weight_dtype": "default"}},)",
             name.c_str()) +
         words("text", 1) + words("other_text", 2) +
         text(
             R"("size": {"class_type": "EmptySD3LatentImage", "inputs": {"width": %u, "height": %u, "batch_size": 1}},)",
             w.width, w.height) +
         text(
             R"("sample": {"class_type": "KSampler", "inputs": {"model": ["model", 0], "positive": ["text", 0], "negative": ["other_text", 0],)"
             R"("latent_image": ["size", 0], "seed": 1, "steps": %u, "cfg": %s, "sampler_name": "euler", "scheduler": "simple", "denoise": 1.0}},)",
             w.steps, w.sets == 2 ? "3.5" : "1.0") +
         R"("end": {"class_type": "Discard", "inputs": {"value": ["sample", 0]}}})";
}

heddle_status* make(const FluxShape& usual, const heddle_bench_shape_desc* self,
                    const heddle_bench_request* request, const heddle_bench_sink* sink) {
  return guard([&] {
    const FluxShape shape = request->is_small != 0 ? small_of(usual) : usual;
    const auto given = [](std::uint32_t value, std::uint32_t otherwise) {
      return value != 0 ? value : otherwise;
    };
    heddle_bench_workflow w{};
    w.size = sizeof w;
    w.width = given(request->width, shape.side);
    w.height = given(request->height, shape.side);
    w.steps = given(request->steps, shape.steps);
    w.sets = given(request->sets, shape.sets);
    if (w.width % 16 != 0 || w.height % 16 != 0 || std::max(w.width, w.height) > 16384)
      throw Error(HEDDLE_INVALID_ARGUMENT, text("a picture of %u x %u pixels: FLUX draws such as "
                                                "have sides that are multiples of 16, up to 16384",
                                                w.width, w.height));
    if (w.sets > 2)
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  text("%u sets of inputs in a step: guidance has 1 or 2", w.sets));
    const std::string name = self->name;
    Tensors tensors(*sink, "diffusion_models/" + name + ".safetensors");
    add_tensors(shape, tensors);
    const std::string json = workflow(shape, name, w);
    w.json = json.c_str();
    w.node = "sample";
    w.output = "sample.LATENT";
    w.field = "samples";
    w.vary = "sample.seed";
    sink->workflow(sink->to, &w);
  });
}

template <const FluxShape& shape>
heddle_status* make_shape(const heddle_host*, const heddle_bench_shape_desc* self,
                          const heddle_bench_request* request, const heddle_bench_sink* sink) {
  return make(shape, self, request, sink);
}

constexpr heddle_bench_shape_desc kShapes[] = {
    {sizeof(heddle_bench_shape_desc), "flux-dev", "FLUX.1 dev, 12 billion parameters, at 1024x1024",
     &make_shape<kDev>},
    {sizeof(heddle_bench_shape_desc), "flux-schnell",
     "FLUX.1 schnell, 12 billion parameters, at 1024x1024", &make_shape<kSchnell>},
    {sizeof(heddle_bench_shape_desc), "tiny-scenes", "the model that comes with heddle, at 256x256",
     &make_shape<kTiny>}};

}  // namespace

const heddle_list* FluxBench::list() {
  static constexpr const void* items[] = {&kShapes[0], &kShapes[1], &kShapes[2]};
  static constexpr heddle_list list{3, items};
  return &list;
}

}  // namespace heddle::denoisers
