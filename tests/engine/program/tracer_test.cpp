// Products of weights whose columns have scales, as they are recorded.
#include "engine/program/tracer.h"

#include <boost/test/unit_test.hpp>

#include "engine/base/error.h"
#include "tests/support/refusal.h"
#include "tests/support/shape_models.h"

using namespace heddle;
using namespace heddle::engine;

namespace {

constexpr std::int64_t kTraceRows = 16, kTraceColumns = 8, kTraceRank = 2, kTraceTokens = 4;

heddle_tensor_info trace_info(std::vector<std::int64_t> shape) {
  return make_info(HEDDLE_F16, shape);
}

// One product of x (1, tokens, columns) and a weight (rows, columns).
struct TracedLayer {
  Node node{"layer",
            "",
            test::shape_models::layer_type(),
            false,
            {Source{kGraphInputs, 0}, std::monostate(), make_value(std::int64_t{1}),
             make_value(std::int64_t{1})},
            {},
            {{{"layer.weight", 0, -1}}},
            {}};

  BlockProgram trace(const FactorInfos& factors) const {
    return trace_block({.node = &node,
                        .compute = HEDDLE_F16,
                        .device = "test",
                        .inputs = {trace_info({1, kTraceTokens, kTraceColumns}), {}, {}, {}},
                        .weights = {trace_info({kTraceRows, kTraceColumns})},
                        .factors = {factors},
                        .shards = {}});
  }
  // Whether an operand is a piece of the weight.
  bool is_piece(const BlockProgram& program, const Operand& operand, WeightPiece piece) const {
    const ProgramStorage& storage = program.storages.at(std::size_t(operand.storage));
    return storage.kind == ProgramStorage::Kind::weight &&
           storage.index == weight_number(node, {0, piece});
  }
  static bool is_input(const BlockProgram& program, const Operand& operand) {
    return program.storages.at(std::size_t(operand.storage)).kind == ProgramStorage::Kind::input;
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(traced_scales, TracedLayer)

BOOST_AUTO_TEST_CASE(what_is_multiplied_is_scaled_first) {
  const BlockProgram program = trace({.scale = trace_info({kTraceColumns})});
  BOOST_TEST_REQUIRE(program.ops.size() == 2u);
  const ProgramOp &scaling = program.ops[0], &product = program.ops[1];
  BOOST_TEST(scaling.op == op_id(HEDDLE_OP_MUL));
  BOOST_TEST(is_input(program, scaling.in[0]));
  BOOST_TEST(is_piece(program, scaling.in[1], WeightPiece::scale));
  // Along the last axis of x, the same for all its rows.
  BOOST_TEST(scaling.in[1].info.rank == 3u);
  BOOST_TEST((scaling.in[1].info.shape[0] == 1 && scaling.in[1].info.shape[1] == 1 &&
              scaling.in[1].info.shape[2] == kTraceColumns));
  BOOST_TEST(same_shape(scaling.out[0].info, scaling.in[0].info));
  BOOST_TEST(product.op == op_id(HEDDLE_OP_LINEAR));
  BOOST_TEST(product.in[0].storage == scaling.out[0].storage);
  BOOST_TEST(is_piece(program, product.in[1], WeightPiece::whole));
}

BOOST_AUTO_TEST_CASE(a_patch_beside_the_weight_reads_what_is_not_scaled) {
  const BlockProgram program = trace({.down = trace_info({kTraceRank, kTraceColumns}),
                                      .up = trace_info({kTraceRows, kTraceRank}),
                                      .scale = trace_info({kTraceColumns})});
  std::size_t down = 0, whole = 0, scalings = 0;
  for (const ProgramOp& op : program.ops) {
    if (op.op == op_id(HEDDLE_OP_MUL)) ++scalings;
    if (op.op != op_id(HEDDLE_OP_LINEAR)) continue;
    if (is_piece(program, op.in[1], WeightPiece::down)) {
      ++down;
      BOOST_TEST(is_input(program, op.in[0]));
    }
    if (is_piece(program, op.in[1], WeightPiece::whole)) {
      ++whole;
      BOOST_TEST(!is_input(program, op.in[0]));
    }
  }
  BOOST_TEST((down == 1 && whole == 1 && scalings == 1));
}

BOOST_AUTO_TEST_CASE(scales_of_other_columns_are_refused) {
  const std::string said =
      test::refusal_of([&] { trace({.scale = trace_info({kTraceColumns / 2})}); }).what();
  BOOST_TEST(said.find("the columns of the weight 'weight' have scales (pre_quant_scale)") !=
                 std::string::npos,
             said);
}

BOOST_AUTO_TEST_SUITE_END()
