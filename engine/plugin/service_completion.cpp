// heddle.completion/0: calls that go on after execute().
#include "engine/device/status.h"
#include "engine/plugin/host.h"
#include "engine/run/node_call.h"

namespace heddle::engine {

const heddle_completion_service* completion_service() {
  static const heddle_completion_service table{
      [](heddle_ctx* ctx) -> heddle_completion* {
        try {
          return ctx->defer();
        } catch (...) {
          return nullptr;  // blocks cannot be deferred
        }
      },
      [](heddle_completion* completion, heddle_status* status) {
        if (completion->done.exchange(true)) return free_status(status);
        completion->finish(status);
      }};
  return &table;
}

}  // namespace heddle::engine
