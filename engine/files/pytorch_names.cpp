#include "engine/files/pytorch_names.h"

#include <array>

namespace heddle::engine {
namespace {

constexpr auto kKnown = std::to_array<PytorchName>({
    {"torch._utils._rebuild_tensor", PytorchRole::tensor},
    {"torch._utils._rebuild_tensor_v2", PytorchRole::tensor},
    {"torch._utils._rebuild_tensor_v3", PytorchRole::tensor_v3},
    {"torch._utils._rebuild_parameter", PytorchRole::parameter},
    {"torch._utils._rebuild_parameter_with_state", PytorchRole::parameter},
    {"torch.Size", PytorchRole::size},
    {"torch.DoubleStorage", PytorchRole::storage, DType::f64},
    {"torch.FloatStorage", PytorchRole::storage, DType::f32},
    {"torch.HalfStorage", PytorchRole::storage, DType::f16},
    {"torch.BFloat16Storage", PytorchRole::storage, DType::bf16},
    {"torch.LongStorage", PytorchRole::storage, DType::i64},
    {"torch.IntStorage", PytorchRole::storage, DType::i32},
    {"torch.ShortStorage", PytorchRole::storage, DType::i16},
    {"torch.CharStorage", PytorchRole::storage, DType::i8},
    {"torch.ByteStorage", PytorchRole::storage, DType::u8},
    {"torch.BoolStorage", PytorchRole::storage, DType::bool8},
    {"torch.UntypedStorage", PytorchRole::untyped},
    {"torch.storage.UntypedStorage", PytorchRole::untyped},
    {"torch.float64", PytorchRole::type, DType::f64},
    {"torch.float32", PytorchRole::type, DType::f32},
    {"torch.float16", PytorchRole::type, DType::f16},
    {"torch.bfloat16", PytorchRole::type, DType::bf16},
    {"torch.float8_e4m3fn", PytorchRole::type, DType::f8_e4m3},
    {"torch.float8_e5m2", PytorchRole::type, DType::f8_e5m2},
    {"torch.int64", PytorchRole::type, DType::i64},
    {"torch.int32", PytorchRole::type, DType::i32},
    {"torch.int16", PytorchRole::type, DType::i16},
    {"torch.int8", PytorchRole::type, DType::i8},
    {"torch.uint8", PytorchRole::type, DType::u8},
    {"torch.uint16", PytorchRole::type, DType::u16},
    {"torch.uint32", PytorchRole::type, DType::u32},
    {"torch.uint64", PytorchRole::type, DType::u64},
    {"torch.bool", PytorchRole::type, DType::bool8},
    {"torch.device", PytorchRole::idle},
    {"_codecs.encode", PytorchRole::idle},
    {"numpy.dtype", PytorchRole::idle},
    {"numpy.core.multiarray.scalar", PytorchRole::idle},
    {"numpy._core.multiarray.scalar", PytorchRole::idle},
    {"pytorch_lightning.callbacks.model_checkpoint.ModelCheckpoint", PytorchRole::idle},
});

constexpr auto kKnownNames = [] {
  std::array<std::string_view, kKnown.size()> names;
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = kKnown[i].name;
  return names;
}();

}  // namespace

std::span<const std::string_view> pytorch_names() { return kKnownNames; }

const PytorchName* pytorch_name(std::size_t index) {
  return index < kKnown.size() ? &kKnown[index] : nullptr;
}

}  // namespace heddle::engine
