#include "engine/tensor/tensor.h"

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/tensor/dtype.h"
#include "engine/tensor/host_memory.h"

namespace heddle::engine {

namespace {

class HostStorage final : public Storage {
 public:
  explicit HostStorage(std::uint64_t bytes) : piece_(allocate_host(bytes)), bytes_(bytes) {}
  ~HostStorage() override { free_host(piece_); }
  HostStorage(const HostStorage&) = delete;
  std::byte* data() const override { return static_cast<std::byte*>(piece_.data); }
  std::uint64_t bytes() const override { return bytes_; }
  const char* place() const override { return "host"; }

 private:
  const HostPiece piece_;
  const std::uint64_t bytes_;
};

}  // namespace

Tensor make_tensor(const heddle_tensor_info& info, std::shared_ptr<Storage> storage,
                   std::uint64_t offset_bytes) {
  return Tensor::adopt(new heddle_tensor(info, std::move(storage), offset_bytes));
}

Tensor make_host_tensor(const heddle_tensor_info& info) {
  return make_tensor(info, std::make_shared<HostStorage>(dense_bytes(info)));
}

Tensor view(const Tensor& tensor, const heddle_tensor_info& info, std::int64_t offset) {
  if (tensor->info.layout != 0)
    throw Error(Code::unsupported,
                cat("a view of ", describe(tensor->info), " is not possible: it is packed for ",
                    tensor->storage->place()));
  const heddle_tensor_info to = checked_info(info, "view");
  const std::int64_t element = dtype_size(DType(to.dtype));
  if (element != std::int64_t(dtype_size(DType(tensor->info.dtype))))
    throw Error(Code::invalid_argument, cat("a view of ", describe(tensor->info), " as ",
                                            describe(to), " changes the size of an element"));
  const Extent touched = extent(to);
  const std::int64_t begin =
      std::int64_t(tensor->offset_bytes) + (offset + touched.begin) * element;
  const std::int64_t end = std::int64_t(tensor->offset_bytes) + (offset + touched.end) * element;
  if (touched.begin != touched.end && (begin < 0 || std::uint64_t(end) > tensor->storage->bytes()))
    throw Error(Code::invalid_argument,
                cat("a view of ", describe(tensor->info), " as ", describe(to), " at element ",
                    offset, " leaves the tensor's memory of ", tensor->storage->bytes(), " bytes"));
  return make_tensor(to, tensor->storage,
                     std::uint64_t(std::int64_t(tensor->offset_bytes) + offset * element));
}

}  // namespace heddle::engine
