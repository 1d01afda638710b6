// heddle.call/0: what a call knows of itself.
#include "engine/plugin/host.h"
#include "engine/tensor/call.h"

namespace heddle::engine {

const heddle_call_service* call_service() {
  static const heddle_call_service table{
      [](heddle_ctx* ctx) -> std::int32_t { return ctx->cancelled() ? 1 : 0; },
      [](heddle_ctx* ctx) { return ctx->node(); }, [](heddle_ctx* ctx) { return ctx->device(); },
      [](heddle_ctx* ctx) { return ctx->compute(); },
      [](heddle_ctx* ctx) { return ctx->stream(); }};
  return &table;
}

}  // namespace heddle::engine
