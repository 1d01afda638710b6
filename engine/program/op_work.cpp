#include "engine/program/op_work.h"

#include <algorithm>
#include <vector>

#include "engine/files/checkpoint.h"
#include "engine/graph/model.h"
#include "engine/program/weight_slot.h"
#include "engine/tensor/call.h"
#include "engine/tensor/shape.h"
#include "heddle/abi/batch_ops.h"
#include "heddle/abi/frame_ops.h"
#include "heddle/abi/ops.h"

namespace heddle::engine {

namespace {

OpKind kind_of(const ProgramOp& op, bool scaled_fp8) {
  static const std::uint32_t linear = op_id(HEDDLE_OP_LINEAR), conv2d = op_id(HEDDLE_OP_CONV2D),
                             conv3d = op_id(HEDDLE_OP_CONV3D),
                             attention = op_id(HEDDLE_OP_ATTENTION),
                             batched = op_id(HEDDLE_OP_BATCHED_PRODUCT);
  if (op.op == attention) return OpKind::attention;
  if (op.op == conv2d || op.op == conv3d || op.op == batched) return OpKind::gemm;
  if (op.op != linear) return OpKind::other;
  const heddle_dtype matrix = op.in[1].info.dtype;
  if (matrix == HEDDLE_I8_SCALED || matrix == HEDDLE_I8_ROTATED) return OpKind::int8_gemm;
  return scaled_fp8 && matrix == HEDDLE_F8_E4M3 ? OpKind::fp8_gemm : OpKind::gemm;
}

}  // namespace

OpWork op_work(const ProgramOp& op, bool scaled_fp8) {
  std::vector<heddle_view> views(op.in.size() + op.out.size());
  std::vector<const heddle_view*> pointers(views.size(), nullptr);
  std::size_t i = 0;
  for (const auto* list : {&op.in, &op.out})
    for (const Operand& operand : *list) {
      if (operand.storage >= 0) {
        views[i] = {operand.info, nullptr};
        pointers[i] = &views[i];
      }
      ++i;
    }
  const heddle_op_call call{sizeof(heddle_op_call),
                            op_name(op.op),
                            std::uint32_t(op.in.size()),
                            std::uint32_t(op.out.size()),
                            pointers.data(),
                            pointers.data() + op.in.size(),
                            op.attrs.data(),
                            std::uint32_t(op.attrs.size())};
  const OpCost cost = op_cost(call);
  return {kind_of(op, scaled_fp8), cost.flops, cost.bytes};
}

// Divided in `tensor` is what is read from or computed of divided matrices, up to the GEMM that has
// a part of each sum.
std::vector<BlockOp> block_ops(const BlockProgram& program, const Node& node, bool scaled_fp8,
                               const std::map<std::uint32_t, std::uint32_t>& weight_places) {
  std::vector<BlockOp> ops;
  std::vector<bool> sharded(program.storages.size(), false);
  const auto shard_axis = [&](const Operand& o) {
    if (o.storage < 0 || program.storages[o.storage].kind != ProgramStorage::Kind::weight)
      return -1;
    const WeightSlot of = weight_slot(node, program.storages[o.storage].index);
    const int axis = of.slot < node.shards.size() ? int(node.shards[of.slot].axis) : -1;
    return of.piece == WeightPiece::scale && axis == 0 ? -1 : axis;  // it is of all columns
  };
  for (const ProgramOp& op : program.ops) {
    BlockOp& made = ops.emplace_back(BlockOp{op_work(op, scaled_fp8), 0, 0, 0, {}});
    const bool is_gemm = made.work.kind == OpKind::gemm || made.work.kind == OpKind::fp8_gemm ||
                         made.work.kind == OpKind::int8_gemm;
    const bool is_sum = is_gemm && shard_axis(op.in[1]) == 1;
    bool any = false;
    for (const Operand& o : op.in) {
      if (o.storage < 0) continue;
      const bool in_part = sharded[o.storage] || shard_axis(o) >= 0;
      if (in_part) made.row_bytes += double(dense_bytes(o.info));
      any = any || in_part;
      const ProgramStorage& storage = program.storages[o.storage];
      if (storage.kind != ProgramStorage::Kind::weight) continue;
      made.weight_bytes += double(dense_bytes(o.info));
      made.weights.push_back(weight_places.at(storage.index));
    }
    for (const Operand& o : op.out) {
      if (o.storage < 0) continue;
      if (is_sum) made.sum_elements += double(element_count(o.info));
      if (is_sum || !any) continue;
      sharded[o.storage] = true;
      made.row_bytes += double(dense_bytes(o.info));
    }
  }
  return ops;
}

std::uint64_t peak_bytes(const BlockProgram& program) {
  struct Life {
    std::size_t first = ~std::size_t(0), last = 0;
  };
  std::vector<Life> lives(program.storages.size());
  const auto touch = [&](const Operand& o, std::size_t at) {
    if (o.storage < 0) return;
    lives[o.storage].first = std::min(lives[o.storage].first, at);
    lives[o.storage].last = std::max(lives[o.storage].last, at);
  };
  for (std::size_t i = 0; i < program.ops.size(); ++i)
    for (const auto* list : {&program.ops[i].in, &program.ops[i].out})
      for (const Operand& o : *list) touch(o, i);
  for (const Operand& o : program.outputs) touch(o, program.ops.size());
  std::vector<std::int64_t> change(program.ops.size() + 2, 0);
  for (std::size_t s = 0; s < lives.size(); ++s) {
    if (program.storages[s].kind != ProgramStorage::Kind::local ||
        lives[s].first == ~std::size_t(0))
      continue;
    change[lives[s].first] += std::int64_t(program.storages[s].bytes);
    change[lives[s].last + 1] -= std::int64_t(program.storages[s].bytes);
  }
  std::int64_t live = 0, peak = 0;
  for (const std::int64_t c : change) peak = std::max(peak, live += c);
  return std::uint64_t(peak);
}

bool is_scaled_fp8(const Model& model) {
  return model.checkpoint != nullptr &&
         std::ranges::any_of(model.checkpoint->tensors(), &TensorView::is_scaled_fp8);
}

}  // namespace heddle::engine
