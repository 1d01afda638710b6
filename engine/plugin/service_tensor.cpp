// heddle.tensor/0: tensors and what a call makes of them.
#include "engine/device/status.h"
#include "engine/plugin/host.h"
#include "engine/tensor/call.h"

namespace heddle::engine {

const heddle_tensor_service* tensor_service() {
  static const heddle_tensor_service table{
      [](heddle_tensor* t) { Tensor::share(t).release(); },
      [](heddle_tensor* t) { Tensor::drop(t); },
      [](const heddle_tensor* t) { return &t->info; },
      [](heddle_tensor* t) -> void* { return t->data(); },
      [](const heddle_tensor* t) { return t->storage->place(); },
      [](heddle_ctx* ctx, const heddle_tensor_info* info, heddle_tensor** out) {
        return to_status([&] { *out = ctx->make(*info).release(); });
      },
      [](heddle_ctx* ctx, const heddle_tensor_info* info, heddle_tensor** out) {
        return to_status([&] { *out = ctx->make_host(*info).release(); });
      },
      [](heddle_tensor* t, const heddle_tensor_info* info, std::int64_t offset,
         heddle_tensor** out) {
        return to_status([&] { *out = view(Tensor::share(t), *info, offset).release(); });
      },
      [](heddle_ctx* ctx, const heddle_tensor_info* info, const void* src, heddle_tensor** out) {
        return to_status([&] { *out = ctx->upload(*info, src).release(); });
      },
      [](heddle_ctx* ctx, heddle_tensor* t, void* dst, std::size_t bytes) {
        return to_status([&] { ctx->read(t, dst, bytes); });
      }};
  return &table;
}

}  // namespace heddle::engine
