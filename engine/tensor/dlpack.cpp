#include "engine/tensor/dlpack.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/tensor/dtype.h"

namespace heddle::engine {

namespace {

struct Pair {
  DType ours;
  std::uint8_t code, bits;
};
constexpr Pair kTypes[] = {
    {DType::f32, HEDDLE_DL_FLOAT, 32},
    {DType::f16, HEDDLE_DL_FLOAT, 16},
    {DType::bf16, HEDDLE_DL_BFLOAT, 16},
    {DType::f64, HEDDLE_DL_FLOAT, 64},
    {DType::i8, HEDDLE_DL_INT, 8},
    {DType::i16, HEDDLE_DL_INT, 16},
    {DType::i32, HEDDLE_DL_INT, 32},
    {DType::i64, HEDDLE_DL_INT, 64},
    {DType::u8, HEDDLE_DL_UINT, 8},
    {DType::u16, HEDDLE_DL_UINT, 16},
    {DType::u32, HEDDLE_DL_UINT, 32},
    {DType::u64, HEDDLE_DL_UINT, 64},
    {DType::bool8, HEDDLE_DL_BOOL, 8},
    {DType::f8_e4m3, HEDDLE_DL_FLOAT8_E4M3FN, 8},
    {DType::f8_e5m2, HEDDLE_DL_FLOAT8_E5M2, 8},
};

DType type_of(const DLDataType& type) {
  for (const Pair& pair : kTypes)
    if (type.lanes == 1 && type.code == pair.code && type.bits == pair.bits) return pair.ours;
  throw Error(
      Code::unsupported,
      cat("the DLPack element type with code ", int(type.code), ", ", int(type.bits), " bits and ",
          type.lanes, " lanes is not known here. Convert the tensor, to f32 for example."));
}

class ManagedStorage final : public Storage {
 public:
  ManagedStorage(ManagedTensor tensor, std::byte* data, std::uint64_t bytes)
      : tensor_(std::move(tensor)), data_(data), bytes_(bytes) {}
  std::byte* data() const override { return data_; }
  std::uint64_t bytes() const override { return bytes_; }
  const char* place() const override { return "host"; }

 private:
  const ManagedTensor tensor_;
  std::byte* const data_;
  const std::uint64_t bytes_;
};

// What a tensor that goes out holds; the DLPack struct stands in it.
struct Outgoing {
  DLManagedTensor managed{};
  Tensor tensor;
  std::array<std::int64_t, HEDDLE_MAX_RANK> shape{}, strides{};
};

}  // namespace

ManagedTensor take_managed(DLManagedTensor* tensor) {
  if (tensor == nullptr) throw Error(Code::invalid_argument, "the DLPack tensor is a null pointer");
  return ManagedTensor(tensor, [](DLManagedTensor* t) {
    if (t->deleter != nullptr) t->deleter(t);
  });
}

Tensor from_dlpack(const ManagedTensor& given) {
  const DLTensor& t = given->dl_tensor;
  const auto device = std::int32_t(t.device.device_type);
  if (device != HEDDLE_DL_CPU && device != HEDDLE_DL_CUDA_HOST)
    throw Error(
        Code::unsupported,
        cat("the tensor lies on the DLPack device type ", device, ", number ", t.device.device_id,
            "; only host memory (types 1 and 3) is taken. Copy it to the host first."));
  const DType dtype = type_of(t.dtype);
  if (t.ndim < 0 || t.ndim > HEDDLE_MAX_RANK)
    throw Error(Code::unsupported, cat("the tensor has ", t.ndim, " axes; 0 to ",
                                       int(HEDDLE_MAX_RANK), " are possible"));
  if (t.ndim > 0 && t.shape == nullptr)
    throw Error(Code::invalid_argument, cat("the tensor has ", t.ndim, " axes and no shape"));
  const heddle_tensor_info info =
      make_info(heddle_dtype(dtype), std::span(t.shape, std::size_t(t.ndim)));
  if (t.strides != nullptr) {
    heddle_tensor_info strided = info;
    std::copy_n(t.strides, t.ndim, strided.stride);
    if (!is_contiguous(strided))
      throw Error(
          Code::unsupported,
          cat("the tensor ", describe(info), " has the strides (",
              join(std::span(t.strides, std::size_t(t.ndim)), ", "), "), row-major ones are (",
              join(std::span(info.stride, info.rank), ", "), "). Make it contiguous first."));
  }
  const std::uint64_t bytes = dense_bytes(info);
  if (t.data == nullptr && bytes > 0)
    throw Error(Code::invalid_argument, cat("the tensor ", describe(info), " has no data"));
  std::byte* const data = static_cast<std::byte*>(t.data) + (t.data == nullptr ? 0 : t.byte_offset);
  if (reinterpret_cast<std::uintptr_t>(data) % dtype_size(dtype) != 0)
    throw Error(Code::invalid_argument,
                cat("the tensor ", describe(info), " does not lie at a multiple of its element's ",
                    dtype_size(dtype), " bytes"));
  return make_tensor(info, std::make_shared<ManagedStorage>(given, data, bytes));
}

DLManagedTensor* to_dlpack(const Tensor& tensor) {
  const heddle_tensor_info& info = tensor->info;
  auto out = std::make_unique<Outgoing>();
  out->tensor = tensor;
  std::copy_n(info.shape, info.rank, out->shape.begin());
  std::copy_n(info.stride, info.rank, out->strides.begin());
  DLTensor& t = out->managed.dl_tensor;
  t.data = tensor->data();
  t.device = {};
  t.device.device_type = decltype(t.device.device_type)(HEDDLE_DL_CPU);
  t.ndim = std::int32_t(info.rank);
  for (const Pair& pair : kTypes)
    if (heddle_dtype(pair.ours) == info.dtype) t.dtype = {pair.code, pair.bits, 1};
  t.shape = out->shape.data();
  t.strides = out->strides.data();
  out->managed.manager_ctx = out.get();
  out->managed.deleter = [](DLManagedTensor* self) {
    delete static_cast<Outgoing*>(self->manager_ctx);
  };
  return &out.release()->managed;
}

}  // namespace heddle::engine
