// heddle.resume/0: calls that are stopped between two steps, and go on later.
#include "engine/device/status.h"
#include "engine/plugin/host.h"
#include "engine/tensor/call.h"

namespace heddle::engine {

const heddle_resume_service* resume_service() {
  static const heddle_resume_service table{
      [](heddle_ctx* ctx) -> const heddle_value* {
        const heddle_value* state = nullptr;
        free_status(to_status([&] { state = ctx->saved_state(); }));
        return state;
      },
      [](heddle_ctx* ctx) -> std::int32_t {
        bool is_wanted = false;
        free_status(to_status([&] { is_wanted = ctx->at_boundary(); }));
        return is_wanted ? 1 : 0;
      },
      [](heddle_ctx* ctx, heddle_value* state) {
        return to_status([&] { ctx->save_state(Value::adopt(state)); });
      }};
  return &table;
}

}  // namespace heddle::engine
