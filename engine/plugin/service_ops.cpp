// heddle.ops/0: device operations.
#include "engine/device/status.h"
#include "engine/plugin/host.h"
#include "engine/tensor/call.h"

namespace heddle::engine {

const heddle_ops_service* ops_service() {
  static const heddle_ops_service table{
      [](const char* name) { return name == nullptr || *name == 0 ? HEDDLE_NO_OP : op_id(name); },
      [](heddle_ctx* ctx, heddle_op_id op, std::uint32_t in_count, heddle_tensor* const* in,
         std::uint32_t out_count, heddle_tensor* const* out, const void* attrs,
         std::uint32_t attrs_size) {
        return to_status([&] {
          ctx->op(op, {in, in_count}, {out, out_count},
                  {static_cast<const std::byte*>(attrs), attrs_size});
        });
      }};
  return &table;
}

}  // namespace heddle::engine
