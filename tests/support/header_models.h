// Checkpoints of the true size of published models, as headers over a hole, and the calls that a
// workflow makes of them: for plans of models that no test machine could load.
#pragma once

#include <string>
#include <vector>

#include "engine/program/infer.h"
#include "engine/tensor/shape.h"
#include "tests/support/safetensors_writer.h"

namespace heddle::test {

class Header {
 public:
  explicit Header(std::string dtype) : dtype_(std::move(dtype)) {}
  Header& add(std::string name, std::vector<std::int64_t> shape) {
    tensors.push_back({std::move(name), dtype_, std::move(shape)});
    return *this;
  }
  Header& linear(const std::string& name, std::int64_t rows, std::int64_t columns) {
    return add(name + ".weight", {rows, columns}).add(name + ".bias", {rows});
  }
  std::vector<FileTensor> tensors;

 private:
  std::string dtype_;
};

// FLUX.1-dev: 19 double and 38 single blocks of width 3072, 22.2 GiB in bf16.
inline std::vector<FileTensor> flux_header(std::int64_t doubles = 19, std::int64_t singles = 38,
                                           std::int64_t hidden = 3072) {
  const std::int64_t head = 128, mlp = 4 * hidden;
  Header h("BF16");
  h.linear("img_in", hidden, 64).linear("txt_in", hidden, 4096);
  for (const auto& [name, width] :
       {std::pair("time_in", 256), std::pair("vector_in", 768), std::pair("guidance_in", 256)})
    h.linear(std::string(name) + ".in_layer", hidden, width)
        .linear(std::string(name) + ".out_layer", hidden, hidden);
  for (std::int64_t i = 0; i < doubles; ++i)
    for (const char* side : {"img", "txt"}) {
      const std::string at = "double_blocks." + std::to_string(i) + "." + side + "_";
      h.linear(at + "mod.lin", 6 * hidden, hidden).linear(at + "attn.qkv", 3 * hidden, hidden);
      h.add(at + "attn.norm.query_norm.scale", {head}).add(at + "attn.norm.key_norm.scale", {head});
      h.linear(at + "attn.proj", hidden, hidden)
          .linear(at + "mlp.0", mlp, hidden)
          .linear(at + "mlp.2", hidden, mlp);
    }
  for (std::int64_t i = 0; i < singles; ++i) {
    const std::string at = "single_blocks." + std::to_string(i) + ".";
    h.linear(at + "modulation.lin", 3 * hidden, hidden)
        .linear(at + "linear1", 3 * hidden + mlp, hidden)
        .linear(at + "linear2", hidden, hidden + mlp);
    h.add(at + "norm.query_norm.scale", {head}).add(at + "norm.key_norm.scale", {head});
  }
  h.linear("final_layer.adaLN_modulation.1", 2 * hidden, hidden)
      .linear("final_layer.linear", 64, hidden);
  return h.tensors;
}

// The encoder of T5-XXL: 24 layers of width 4096, 8.9 GiB in fp16.
inline std::vector<FileTensor> t5_header(int layers = 24, std::int64_t width = 4096,
                                         std::int64_t mlp = 10240) {
  Header h("F16");
  h.add("shared.weight", {32128, width});
  for (int i = 0; i < layers; ++i) {
    const std::string at = "encoder.block." + std::to_string(i) + ".layer.";
    for (const char* name : {"q", "k", "v", "o"})
      h.add(at + "0.SelfAttention." + name + ".weight", {width, width});
    h.add(at + "0.layer_norm.weight", {width}).add(at + "1.layer_norm.weight", {width});
    h.add(at + "1.DenseReluDense.wi_0.weight", {mlp, width})
        .add(at + "1.DenseReluDense.wi_1.weight", {mlp, width});
    h.add(at + "1.DenseReluDense.wo.weight", {width, mlp});
  }
  h.add("encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight", {32, 64});
  h.add("encoder.final_layer_norm.weight", {width});
  return h.tensors;
}

// CLIP-L: 12 layers of width 768.
inline std::vector<FileTensor> clip_header(int layers = 12, std::int64_t width = 768) {
  Header h("F16");
  h.add("text_model.embeddings.token_embedding.weight", {49408, width})
      .add("text_model.embeddings.position_embedding.weight", {77, width});
  for (int i = 0; i < layers; ++i) {
    const std::string at = "text_model.encoder.layers." + std::to_string(i) + ".";
    for (const char* name : {"q_proj", "k_proj", "v_proj", "out_proj"})
      h.linear(at + "self_attn." + name, width, width);
    h.linear(at + "mlp.fc1", 4 * width, width).linear(at + "mlp.fc2", width, 4 * width);
    for (const char* name : {"layer_norm1", "layer_norm2"})
      h.add(at + name + ".weight", {width}).add(at + name + ".bias", {width});
  }
  h.add("text_model.final_layer_norm.weight", {width})
      .add("text_model.final_layer_norm.bias", {width});
  return h.tensors;
}

inline heddle_tensor_info info_of(heddle_dtype dtype, std::vector<std::int64_t> shape) {
  return engine::make_info(dtype, shape);
}

struct CallSize {
  std::int64_t width = 1024, height = 1024, batch = 1, tokens = 512;
  std::uint32_t steps = 20, sets = 1;
};

inline engine::CallSpec flux_call(engine::Value model, const CallSize& size) {
  engine::CallSpec call;
  call.model = std::move(model);
  call.step_count = size.steps;
  call.schedule = {{"timestep", info_of(HEDDLE_F32, {size.steps})}};
  for (std::uint32_t set = 0; set < size.sets; ++set)
    call.sets.push_back(
        {{{"context", info_of(HEDDLE_F32, {1, size.tokens, 4096})},
          {"y", info_of(HEDDLE_F32, {1, 768})},
          {"guidance", info_of(HEDDLE_F32, {1})}},
         {{"x", info_of(HEDDLE_F32, {size.batch, 16, size.height / 8, size.width / 8})}}});
  return call;
}

inline engine::CallSpec text_call(engine::Value model, const CallSize& size, bool with_end) {
  engine::CallSpec call;
  call.model = std::move(model);
  call.sets.push_back({{{"ids", info_of(HEDDLE_I32, {size.batch, size.tokens})}}, {}});
  if (with_end) call.sets.front().constants["eos"] = info_of(HEDDLE_I32, {size.batch});
  return call;
}

}  // namespace heddle::test
