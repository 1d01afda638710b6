// Cases of the ops that choose rows (abi/row_ops.h): scores of 16 bits have equal ones.
#include <heddle/abi/row_ops.h>

#include "heddle/device.hpp"
#include "op_cases.h"

namespace heddle::conformance {

void add_row_cases(Random& random, std::vector<OpCase>& cases) {
  constexpr std::int64_t kRows = 301, kColumns = 133;
  for (heddle_dtype type : kFloats)
    for (const std::int64_t moved : {std::int64_t{0}, std::int64_t{97}, kRows})
      cases.push_back(
          {.name =
               label(HEDDLE_OP_MATCH_ROWS, device::cat(device::dtype_name(type), " moves ", moved)),
           .op = HEDDLE_OP_MATCH_ROWS,
           .in = {filled(random, HostTensor(type, {2, kRows, kColumns}))},
           .out = {HostTensor(HEDDLE_I32, {2, kRows}), HostTensor(HEDDLE_I32, {2, kRows - moved}),
                   HostTensor(HEDDLE_I32, {2, moved}), HostTensor(HEDDLE_I32, {2, moved}),
                   HostTensor(HEDDLE_F32, {2, kRows})}});
  for (heddle_dtype type : kFloats) {
    constexpr std::int64_t kMoved = 45, kBases = 7, kThere = 60;
    HostTensor moved(HEDDLE_I32, {2, kMoved}), to(HEDDLE_I32, {2, kMoved});
    for (std::int64_t i = 0; i < moved.count(); ++i) {
      moved.set(i, static_cast<double>(random() % kThere));
      to.set(i, static_cast<double>(random() % (kBases - 1)));  // one row gets none
    }
    cases.push_back({.name = label(HEDDLE_OP_MERGE_ROWS, device::dtype_name(type)),
                     .op = HEDDLE_OP_MERGE_ROWS,
                     .in = {filled(random, HostTensor(type, {2, kBases, 40})),
                            filled(random, HostTensor(type, {2, kThere, 40})), moved, to},
                     .out = {HostTensor(type, {2, kBases, 40})}});
  }
}

}  // namespace heddle::conformance
