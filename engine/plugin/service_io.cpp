// heddle.io/0: what a call is given and what it gives.
#include "engine/base/text.h"
#include "engine/device/status.h"
#include "engine/plugin/host.h"
#include "engine/plugin/text_or_empty.h"
#include "engine/tensor/call.h"

namespace heddle::engine {

const heddle_io_service* io_service() {
  static const heddle_io_service table{
      [](heddle_ctx* ctx, heddle_port_index index) { return ctx->input(index); },
      [](heddle_ctx* ctx, heddle_port_index index, heddle_value* value) {
        return to_status([&] {
          Value taken = Value::adopt(value);
          const bool lacked_memory = take_lack_of_memory();
          if (!taken && lacked_memory)
            throw Error(Code::out_of_memory,
                        "host memory ran out while the value of an output was made");
          if (!taken)
            throw Error(Code::invalid_argument,
                        cat("output ", index, " was set to NULL: a node has to give a value"));
          ctx->set_output(index, std::move(taken));
        });
      },
      [](heddle_ctx* ctx, const char* input) {
        return to_status([&] { ctx->want(text_or_empty(input)); });
      },
      [](heddle_ctx* ctx) { return std::uint32_t(ctx->extras().size()); },
      [](heddle_ctx* ctx, std::uint32_t i) -> const char* {
        return i < ctx->extras().size() ? ctx->extras()[i].first.c_str() : nullptr;
      },
      [](heddle_ctx* ctx, std::uint32_t i) -> const heddle_value* {
        return i < ctx->extras().size() ? ctx->extras()[i].second.get() : nullptr;
      }};
  return &table;
}

}  // namespace heddle::engine
