#include "engine/device/frame_op_checks.h"

#include <string_view>

#include "heddle/abi/frame_ops.h"

namespace heddle::engine {

void check_conv3d(const Examined& e) {
  e.operands(2, 4, 1);
  const auto &x = *e.in(0), &w = *e.in(1), &o = e.out();
  e.rank(x, 5, "input");
  e.rank(w, 5, "weight");
  e.rank(o, 5, "output");
  e.equal(x.shape[4], w.shape[1], "the input's and the weight's channels");
  e.equal(o.shape[4], w.shape[0], "the output's and the weight's channels");
  e.equal(x.shape[0], o.shape[0], "the batch sizes");
  const auto& a = e.attrs<heddle_conv3d_attrs>();
  constexpr std::string_view kSides[] = {"the output's number of frames", "the output's height",
                                         "the output's width"};
  for (const std::int32_t p : a.padding) e.require(p >= 0, "a padding is negative");
  for (int d = 0; d < 3; ++d) {
    e.require(a.stride[d] > 0, "a stride is not positive");
    const std::int64_t padded = x.shape[1 + d] + a.padding[d] + a.padding[3 + d] - w.shape[2 + d];
    e.require(padded >= 0, "the filter is larger than the padded input");
    e.equal(o.shape[1 + d], padded / a.stride[d] + 1, kSides[d]);
  }
  e.vector(2, w.shape[0], "bias");
  if (const auto* r = e.in(3)) e.same(*r, o, "the residual's and the output's shape");
}

}  // namespace heddle::engine
