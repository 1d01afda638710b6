// What a device has to do in one op, and in those of a block, as far as its time depends on it.
// Values; pure.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "engine/graph/graph.h"
#include "engine/program/program.h"

namespace heddle::engine {

class Model;

// Ops that reach rates of their own. fp8_gemm: GEMMs of fp8 matrices
// (HEDDLE_USE_LINEAR_FP8), where the device multiplies fp8. int8_gemm: of HEDDLE_I8_SCALED and
// HEDDLE_I8_ROTATED, where it multiplies whole numbers.
enum class OpKind : std::uint8_t { other, gemm, fp8_gemm, int8_gemm, attention };

struct OpWork {
  OpKind kind = OpKind::other;
  double flops = 0, bytes = 0;  // as op_cost() counts them
};

// `scaled_fp8`: GEMMs with an f8_e4m3 matrix count as fp8_gemm. REQUIRES: check_op() passed.
OpWork op_work(const ProgramOp& op, bool scaled_fp8);

// An op of a block, and what of it a device has that divides the block with others.
struct BlockOp {
  OpWork work;
  double weight_bytes = 0;  // of its bytes
  // Where matrices are divided (`tensor`): the bytes of operands that a rank has a part of, and the
  // numbers of an output that the ranks' sums add up to. All of its flops are divided, or none.
  double row_bytes = 0, sum_elements = 0;
  std::vector<std::uint32_t> weights;  // read: indices into BlockLoad::slot_bytes
};
// `weight_places`: of the weights that are given, number (weight_slot.h) to the index in
// slot_bytes.
std::vector<BlockOp> block_ops(const BlockProgram& program, const Node& node, bool scaled_fp8,
                               const std::map<std::uint32_t, std::uint32_t>& weight_places);

// The most that the program's own storages take at one time. Outputs stay until the end.
std::uint64_t peak_bytes(const BlockProgram& program);

// Whether the matrices of a model are scaled fp8 (Checkpoint::scale_to_fp8()).
bool is_scaled_fp8(const Model& model);

}  // namespace heddle::engine
