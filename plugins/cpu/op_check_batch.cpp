#include "op_check_batch.h"

#include "op_operands.h"

namespace heddle::cpu {

using namespace operands;

void check_batched_product(const heddle_op_call& call) {
  const heddle_tensor_info &a = need(call, 0, "a"), &b = need(call, 1, "b");
  require_rank(a, "a", 3);
  require_shape(b, "b", {a.shape[0], a.shape[2], last_size(b, "b")});
  require_shape(result(call), "out", {a.shape[0], a.shape[1], b.shape[2]});
}

}  // namespace heddle::cpu
