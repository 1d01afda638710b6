#include "lora_save_nodes.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <optional>
#include <vector>

#include <heddle/checked.hpp>

#include "lora_extract.h"
#include "plugins/blocks/safetensors_text.h"
#include "plugins/blocks/saved_files.h"
#include "saved_tensors.h"

namespace heddle::loaders {
namespace {

// The tensors of a model's file by the names in a LoRA file, without ".weight" and ".bias".
std::vector<SavedTensor> tensors_of(const Value* model, const Value* clip) {
  std::vector<SavedTensor> all;
  if (model != nullptr) add_tensors(*model, "diffusion_model.", all);
  if (clip != nullptr) add_encoders(*clip, "text_encoders.", ".transformer.", all);
  std::sort(all.begin(), all.end(),
            [](const SavedTensor& a, const SavedTensor& b) { return a.name < b.name; });
  return all;
}

std::int64_t product(const Shape& shape, std::size_t from = 0) {
  std::int64_t count = 1;
  for (std::size_t i = from; i < shape.size(); ++i)
    count = checked_product({count, shape[i]}, "a weight");
  return count;
}

// A LoRA file in the making.
class LoraWriter {
 public:
  void add(const std::string& name, const Shape& shape, std::span<const float> values) {
    const std::vector<std::uint8_t>& bytes = bytes_.emplace_back(half_bytes(values));
    tensors_.push_back({name, HEDDLE_F16, shape, bytes});
  }
  std::string text() {
    std::sort(tensors_.begin(), tensors_.end(),
              [](const auto& a, const auto& b) { return a.name < b.name; });
    return blocks::safetensors_text(tensors_, {});
  }

 private:
  std::vector<blocks::StoredTensor> tensors_;
  std::deque<std::vector<std::uint8_t>> bytes_;
};

struct Weight {
  std::string module;
  bool is_bias = false;
  Shape shape;
};
// Nothing for tensors that no LoRA has.
std::optional<Weight> weight_of(const SavedTensor& tensor) {
  for (const char* kind : {".weight", ".bias"})
    if (tensor.name.ends_with(kind))
      return Weight{tensor.name.substr(0, tensor.name.size() - std::strlen(kind)),
                    kind == std::string_view(".bias"), shape_of(tensor)};
  return std::nullopt;
}

std::vector<float> values_of(Context& ctx, const SavedTensor& tensor, const Shape& shape) {
  std::vector<float> values(std::size_t(product(shape)));
  read_weights(ctx, tensor.model, tensor.parts, values);
  const auto is_finite = [](float value) { return std::isfinite(value); };
  if (!std::all_of(values.begin(), values.end(), is_finite))
    throw Error(HEDDLE_INVALID_ARGUMENT, tensor.name + " holds numbers that are not finite");
  return values;
}

void add_factors(Context& ctx, const SavedTensor& tensor, const Weight& weight, LoraWriter& to) {
  const Shape& shape = weight.shape;
  if (shape.size() != 2 && shape.size() != 4) {
    ctx.warn(tensor.name + " has " + std::to_string(shape.size()) +
             " axes and is left out: factors are made of matrices and filters of two dimensions");
    return;
  }
  const std::int64_t columns = product(shape, 1);
  if (shape[0] == 0 || columns == 0) return;
  // Of a filter the rank is held to its channels, as ComfyUI does.
  const LoraFactors factors =
      extract_lora(values_of(ctx, tensor, shape), shape[0], columns,
                   std::min({std::int64_t{ctx[LoraSave::rank]}, shape[0], shape[1]}));
  Shape up{shape[0], factors.rank}, down = shape;
  down[0] = factors.rank;
  if (shape.size() == 4) up.insert(up.end(), {1, 1});
  to.add(weight.module + ".lora_up.weight", up, factors.up);
  to.add(weight.module + ".lora_down.weight", down, factors.down);
}

std::string standard_lora(Context& ctx, const std::vector<SavedTensor>& tensors) {
  LoraWriter file;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (ctx.cancelled()) throw Error(HEDDLE_CANCELLED, "cancelled");
    const std::optional<Weight> weight = weight_of(tensors[i]);
    if (!weight) continue;
    const bool is_vector = weight->is_bias || weight->shape.size() < 2;
    if (!is_vector) add_factors(ctx, tensors[i], *weight, file);
    if (is_vector && ctx[LoraSave::bias_diff])
      file.add(weight->module + (weight->is_bias ? ".diff_b" : ".diff"), weight->shape,
               values_of(ctx, tensors[i], weight->shape));
    ctx.progress(double(i + 1) / double(tensors.size()), tensors[i].name.c_str());
  }
  return file.text();
}

// Nothing is made of these, so they go straight from the models into the file.
std::vector<SavedTensor> whole_differences(Context& ctx, std::vector<SavedTensor> tensors) {
  std::vector<SavedTensor> saved;
  for (SavedTensor& tensor : tensors) {
    const std::optional<Weight> weight = weight_of(tensor);
    if (!weight || (weight->is_bias && !ctx[LoraSave::bias_diff])) continue;
    tensor.name = weight->module + (weight->is_bias ? ".diff_b" : ".diff");
    tensor.dtype = HEDDLE_F16;
    saved.push_back(std::move(tensor));
  }
  return saved;
}

}  // namespace

void LoraSave::execute(Context& ctx) {
  const bool has_model = ctx.has(model_diff), has_clip = ctx.has(text_encoder_diff);
  if (!has_model && !has_clip) return;  // as ComfyUI
  const Value model = has_model ? ctx[model_diff] : Value();
  const Value clip = has_clip ? ctx[text_encoder_diff] : Value();
  std::vector<SavedTensor> tensors =
      tensors_of(has_model ? &model : nullptr, has_clip ? &clip : nullptr);
  const std::string workflow = blocks::workflow_text<LoraSave>(ctx).prompt;
  blocks::SavedFiles files(ctx, "output", ctx[filename_prefix], {}, workflow);
  if (ctx[lora_type] == std::string("full_diff")) {
    const std::vector<SavedTensor> saved = whole_differences(ctx, std::move(tensors));
    files.make([&](const std::string& path) { return save_tensors(ctx, path, saved, {}); },
               ".safetensors");
    return;
  }
  const std::string text = standard_lora(ctx, tensors);
  files.make([&](const std::string& path) { return create_file(path, text); }, ".safetensors");
}

}  // namespace heddle::loaders
