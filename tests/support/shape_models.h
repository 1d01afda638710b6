// Models that are nothing but shapes: a chain of equal layers, and a U of levels whose far sides
// feed each other, as denoisers of pictures have it. Blocks are plain C++ functions; weights are
// headers. For plans, not for runs.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "engine/device/status.h"
#include "engine/files/checkpoint.h"
#include "engine/graph/model.h"
#include "engine/program/infer.h"
#include "engine/tensor/call.h"
#include "engine/tensor/shape.h"
#include "heddle/abi/model.h"
#include "heddle/abi/ops.h"
#include "tests/support/header_models.h"

namespace heddle::test {

namespace shape_models {

inline heddle_tensor* tensor_of(const heddle_value* v) {
  return v == nullptr ? nullptr : engine::get_tensor(*v).get();
}

// out (B, tokens * up / down, N) = linear of x's first tokens / down rows, `up` times, added to
// skip if there is one.
inline heddle_status* layer(void*, heddle_ctx* ctx) {
  return engine::to_status([&] {
    heddle_tensor *const x = tensor_of(ctx->input(0)), *const skip = tensor_of(ctx->input(1));
    heddle_tensor* const weight = ctx->weight(0);
    const std::int64_t down = engine::get_int(*ctx->input(2)), up = engine::get_int(*ctx->input(3));
    heddle_tensor_info part = x->info;
    part.shape[1] /= down;
    const engine::Tensor from = engine::make_tensor(part, x->storage, x->offset_bytes);
    const std::int64_t shape[] = {part.shape[0], part.shape[1] * up, weight->info.shape[0]};
    const engine::Tensor out = ctx->make(engine::make_info(ctx->compute(), shape));
    const heddle_activation_attrs attrs{};
    for (std::int64_t i = 0; i < up; ++i) {
      heddle_tensor_info rows = out->info;
      rows.shape[1] = part.shape[1];
      const std::uint64_t item = ctx->compute() == HEDDLE_F32 ? 4 : 2;
      const engine::Tensor piece = engine::make_tensor(
          rows, out->storage, std::uint64_t(i * part.shape[1] * shape[2]) * item);
      heddle_tensor* const in[] = {from.get(), weight};
      heddle_tensor* const to[] = {piece.get()};
      ctx->op(engine::op_id(HEDDLE_OP_LINEAR), in, to, std::as_bytes(std::span(&attrs, 1)));
    }
    if (skip != nullptr) {
      heddle_tensor* const in[] = {out.get(), skip};
      heddle_tensor* const to[] = {out.get()};
      ctx->op(engine::op_id(HEDDLE_OP_ADD), in, to, {});
    }
    ctx->set_output(0, engine::make_value(out));
  });
}

inline engine::NodeTypeRef layer_type() {
  static const heddle_port x{sizeof(heddle_port), 0, "x", "TENSOR", "", nullptr},
      skip{sizeof(heddle_port), HEDDLE_PORT_OPTIONAL, "skip", "TENSOR", "", nullptr},
      down{sizeof(heddle_port), 0, "down", "INT", "", nullptr},
      up{sizeof(heddle_port), 0, "up", "INT", "", nullptr},
      out{sizeof(heddle_port), 0, "out", "TENSOR", "", nullptr};
  static const heddle_slot weight{sizeof(heddle_slot), 0, "weight", HEDDLE_USE_LINEAR};
  static const heddle_port* const inputs[] = {&x, &skip, &down, &up};
  static const heddle_port* const outputs[] = {&out};
  static const heddle_slot* const weights[] = {&weight};
  static const heddle_node_desc desc{.size = sizeof(heddle_node_desc),
                                     .version = 1,
                                     .type = "shape.layer",
                                     .title = "",
                                     .category = "test",
                                     .doc = "",
                                     .flags = HEDDLE_NODE_BLOCK,
                                     .input_count = 4,
                                     .output_count = 1,
                                     .weight_count = 1,
                                     .inputs = inputs,
                                     .outputs = outputs,
                                     .weights = weights,
                                     .execute = &layer};
  static const engine::NodeTypeRef type =
      std::make_shared<engine::NodeType>(&desc, "test", nullptr);
  return type;
}

}  // namespace shape_models

// Writes the checkpoint beside building the graph.
class ShapeModel {
 public:
  engine::Source input{engine::kGraphInputs, 0};

  engine::Source add(const std::string& path, engine::Source x, std::int64_t columns,
                     std::int64_t rows, std::int64_t down = 1, std::int64_t up = 1,
                     const engine::Source* skip = nullptr) {
    header_.add(path, {rows, columns});
    engine::Node node{path,
                      "",
                      shape_models::layer_type(),
                      false,
                      {x, std::monostate(), engine::make_value(down), engine::make_value(up)},
                      {},
                      {{{path, 0, -1}}},
                      {}};
    if (skip != nullptr) node.inputs[1] = *skip;
    graph_.nodes.push_back(std::move(node));
    graph_.order.push_back(engine::NodeIndex(graph_.nodes.size() - 1));
    return {graph_.order.back(), 0};
  }

  engine::Value finish(const std::filesystem::path& file, const std::string& family,
                       engine::Source out, engine::Hints hints) {
    graph_.inputs = {{"x", HEDDLE_INPUT_PER_STEP | HEDDLE_INPUT_BATCH}};
    graph_.outputs = {{"out", out}};
    write_header_only(file, header_.tensors);
    auto model = std::make_shared<engine::Model>();
    model->family = family;
    model->graph = std::make_shared<const engine::Graph>(std::move(graph_));
    model->checkpoint = std::make_shared<const engine::Checkpoint>(engine::open_checkpoint(file));
    model->hints = std::move(hints);
    return engine::make_value(std::shared_ptr<const engine::Model>(std::move(model)));
  }

 private:
  Header header_{"F16"};
  engine::Graph graph_;
};

// layer.0 to layer.N-1, each `width` squared.
inline engine::Value chain_model(const std::filesystem::path& file, int layers, std::int64_t width,
                                 engine::Hints hints) {
  ShapeModel model;
  engine::Source x = model.input;
  for (int i = 0; i < layers; ++i) x = model.add("layer." + std::to_string(i), x, width, width);
  return model.finish(file, "chain", x, std::move(hints));
}

// Levels down and up again, `blocks` at each; every level has a quarter of the tokens and twice the
// width. up.L reads what down.L made.
inline engine::Value u_model(const std::filesystem::path& file, int levels, int blocks,
                             std::int64_t width, engine::Hints hints) {
  ShapeModel model;
  engine::Source x = model.input;
  std::vector<engine::Source> skips;
  std::int64_t channels = width;
  for (int level = 0; level < levels; ++level) {
    for (int b = 0; b < blocks; ++b)
      x = model.add("down." + std::to_string(level) + "." + std::to_string(b), x, channels,
                    channels);
    skips.push_back(x);
    x = model.add("down." + std::to_string(level) + ".smaller", x, channels, 2 * channels, 4);
    channels *= 2;
  }
  for (int b = 0; b < blocks; ++b)
    x = model.add("middle." + std::to_string(b), x, channels, channels);
  for (int level = levels; level-- > 0;) {
    x = model.add("up." + std::to_string(level) + ".larger", x, channels, channels / 2, 1, 4,
                  &skips[std::size_t(level)]);
    channels /= 2;
    for (int b = 0; b < blocks; ++b)
      x = model.add("up." + std::to_string(level) + "." + std::to_string(b), x, channels, channels);
  }
  return model.finish(file, "u", x, std::move(hints));
}

inline engine::CallSpec shape_call(engine::Value model, const CallSize& size, std::int64_t width) {
  engine::CallSpec call;
  call.model = std::move(model);
  call.step_count = size.steps;
  for (std::uint32_t set = 0; set < size.sets; ++set)
    call.sets.push_back({{}, {{"x", info_of(HEDDLE_F16, {size.batch, size.tokens, width})}}});
  return call;
}

}  // namespace heddle::test
