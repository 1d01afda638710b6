// heddle.stages/0: calls of models that follow each other in rounds, over several devices.
#include "heddle/abi/stages.h"

#include "engine/device/status.h"
#include "engine/plugin/host.h"
#include "engine/tensor/call.h"

namespace heddle::engine {

const heddle_stages_service* stages_service() {
  static const heddle_stages_service table{
      [](heddle_ctx* ctx) { return ctx->begin_stages(); },
      [](heddle_ctx* ctx, heddle_tensor* tensor) {
        return to_status([&] { ctx->set_written(*tensor); });
      },
      [](heddle_ctx* ctx) { return to_status([&] { ctx->join_stages(); }); },
      [](heddle_ctx* ctx) { ctx->end_stages(); }};
  return &table;
}

}  // namespace heddle::engine
