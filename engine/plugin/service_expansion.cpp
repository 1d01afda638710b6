// heddle.expansion/0 and heddle.workflow/0: nodes that a call asks for, and those that there are.
#include "engine/base/text.h"
#include "engine/device/status.h"
#include "engine/plugin/host.h"
#include "engine/plugin/text_or_empty.h"
#include "engine/tensor/call.h"

namespace heddle::engine {

namespace {

NewNode& node_of(heddle_ctx* ctx, std::uint32_t number) {
  NewNodes& asked = ctx->new_nodes();
  if (number >= asked.nodes.size())
    throw Error(Code::invalid_argument, cat("the call has added ", asked.nodes.size(),
                                            " nodes, there is no number ", number));
  return asked.nodes[number];
}

}  // namespace

const heddle_expansion_service* expansion_service() {
  static const heddle_expansion_service table{
      [](heddle_ctx* ctx, const char** out) {
        return to_status([&] {
          NewNodes& asked = ctx->new_nodes();
          asked.prefix = cat(ctx->node(), ".", ctx->element(), ".", asked.graphs++, ".");
          *out = asked.prefix.c_str();
        });
      },
      [](heddle_ctx* ctx, const char* id, const char* class_type, const char* display,
         std::uint32_t* out) {
        return to_status([&] {
          NewNodes& asked = ctx->new_nodes();
          if (out != nullptr) *out = std::uint32_t(asked.nodes.size());
          asked.nodes.push_back({std::string(text_or_empty(id)),
                                 std::string(text_or_empty(class_type)),
                                 std::string(text_or_empty(display)),
                                 {}});
        });
      },
      [](heddle_ctx* ctx, std::uint32_t node, const char* input, const heddle_value* value) {
        return to_status([&] {
          if (value == nullptr)
            throw Error(Code::invalid_argument,
                        cat("input ", quote(text_or_empty(input)), " was set to NULL"));
          node_of(ctx, node).inputs.emplace_back(text_or_empty(input), Value::share(value));
        });
      },
      [](heddle_ctx* ctx, std::uint32_t node, const char* input, const char* from,
         heddle_port_index output) {
        return to_status([&] {
          node_of(ctx, node).inputs.emplace_back(text_or_empty(input),
                                                 NewLink{std::string(text_or_empty(from)), output});
        });
      },
      [](heddle_ctx* ctx, heddle_port_index output, const char* from,
         heddle_port_index from_output) {
        return to_status([&] {
          ctx->new_nodes().outputs.emplace_back(
              output, NewLink{std::string(text_or_empty(from)), from_output});
        });
      }};
  return &table;
}

const heddle_workflow_service* workflow_service() {
  static const heddle_workflow_service table{
      [](heddle_ctx* ctx, const char* id, heddle_value** out) {
        return to_status(
            [&] { *out = const_cast<heddle_value*>(ctx->look_up(text_or_empty(id)).release()); });
      }};
  return &table;
}

}  // namespace heddle::engine
