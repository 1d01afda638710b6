#include "weight_hooks.h"

#include <algorithm>
#include <optional>

#include <heddle/model.hpp>

#include "checkpoint_parts.h"
#include "lora_application.h"

namespace heddle::loaders {
namespace {

Value with_lora(const std::string& path, const Value& model, const char* encoder, double strength) {
  LoraApplication lora(read_lora(path));
  const LoraPlace place = encoder == nullptr ? LoraPlace::denoiser : place_of_encoder(model);
  if (!lora.has(place)) return model;
  const Value changed = lora.add_to(model, place, strength);
  lora.require_match();
  return changed;
}

bool is_number(heddle_dtype dtype) {
  switch (dtype) {
    case HEDDLE_I8:
    case HEDDLE_U8:
    case HEDDLE_I16:
    case HEDDLE_U16:
    case HEDDLE_I32:
    case HEDDLE_U32:
    case HEDDLE_I64:
    case HEDDLE_U64:
    case HEDDLE_BOOL8:
      return false;  // positions of tokens and the like
    default:
      return true;
  }
}

bool same_shape(const heddle_tensor_info& a, const heddle_tensor_info& b) {
  return a.rank == b.rank && std::equal(a.shape, a.shape + a.rank, b.shape);
}

std::optional<Checkpoint> part_for(const Checkpoint& file, const char* encoder) {
  if (encoder == nullptr) return denoiser_part(file);
  Checkpoint part = encoder_part(file, encoder);
  if (part.size() == 0) return std::nullopt;
  return part;
}

// strength * (theirs - own), as two sums of whole tensors.
Value with_model(const std::string& path, const Value& model, const char* encoder,
                 double strength) {
  const std::optional<Checkpoint> theirs = part_for(Checkpoint::open(path), encoder);
  if (!theirs) return model;
  const Checkpoint own = model_checkpoint(model);
  std::vector<Patch> added, taken;
  for (std::uint32_t i = 0; i < own.size(); ++i) {
    const std::string name = own.name(i);
    if (!theirs->has(name) || !is_number(own.info(name).dtype) ||
        !same_shape(own.info(name), theirs->info(name)))
      continue;
    added.push_back({name, "", strength, {{name}}});
    taken.push_back({name, "", -strength, {{name}}});
  }
  if (added.empty())
    throw Error(HEDDLE_INVALID_ARGUMENT,
                path + ": none of its " + std::to_string(theirs->size()) +
                    " tensors has the name and the shape of one of " + own.path() +
                    ", so it is no model of the same kind, or its tensors have other names.");
  return with_patches(with_patches(model, *theirs, added), own, taken);
}

using Change = Value (*)(const std::string&, const Value&, const char*, double);

template <Change change>
heddle_status* apply(const heddle_host*, const heddle_value* hook, const heddle_value* model,
                     const char* encoder, double strength, heddle_value** out) {
  return guard([&] {
    const std::string path = Value::share(hook).get<std::string>("file", "");
    *out = change(path, Value::share(model), encoder, strength).release();
  });
}

constexpr heddle_weight_hooks_desc kLora{sizeof(heddle_weight_hooks_desc), kLoraHook,
                                         "LoRA files as LoraLoader reads them", &apply<with_lora>};
constexpr heddle_weight_hooks_desc kModel{sizeof(heddle_weight_hooks_desc), kModelHook,
                                          "checkpoints, as differences from the model",
                                          &apply<with_model>};

}  // namespace

const heddle_list* WeightHookKinds::list() { return descs<kLora, kModel>(); }

}  // namespace heddle::loaders
