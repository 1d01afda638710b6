// heddle.parts/0: tensors that are read while they are being made.
#include "heddle/abi/parts.h"

#include "engine/device/status.h"
#include "engine/plugin/host.h"
#include "engine/tensor/call.h"

namespace heddle::engine {

const heddle_parts_service* parts_service() {
  static const heddle_parts_service table{
      [](heddle_ctx* ctx, heddle_port_index output, heddle_tensor* tensor) {
        bool is_begun = false;
        // Without memory for it everybody waits for the whole.
        free_status(
            to_status([&] { is_begun = ctx->begin_output(output, Tensor::share(tensor)); }));
        return std::int32_t(is_begun);
      },
      [](heddle_ctx* ctx, heddle_port_index output, std::int64_t rows) {
        free_status(to_status([&] { ctx->made_rows(output, rows); }));
      },
      [](heddle_ctx* ctx, heddle_port_index output) {
        free_status(to_status([&] { ctx->take_back_output(output); }));
      },
      [](heddle_ctx* ctx, heddle_tensor* tensor, std::int64_t rows) {
        return to_status([&] { ctx->await_rows(*tensor, rows); });
      }};
  return &table;
}

}  // namespace heddle::engine
