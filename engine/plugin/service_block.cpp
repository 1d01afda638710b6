// heddle.block/0: what the blocks of a model have and workflow nodes have not.
#include "engine/device/status.h"
#include "engine/plugin/host.h"
#include "engine/tensor/call.h"

namespace heddle::engine {

const heddle_block_service* block_service() {
  static const heddle_block_service table{
      [](heddle_ctx* ctx, heddle_slot_index slot) -> heddle_tensor* {
        try {
          return ctx->weight(slot);
        } catch (...) {
          return nullptr;  // only blocks have weights
        }
      },
      [](heddle_ctx* ctx, heddle_group* out) { *out = ctx->group(); },
      [](heddle_ctx* ctx, heddle_port_index input, heddle_shard* out) {
        return to_status([&] { *out = ctx->shard(input); });
      }};
  return &table;
}

}  // namespace heddle::engine
