// Cases of the ops of abi/norm_ops.h: vectors for all rows, for each and for some, what is absent,
// heads and rows of heads, whole eights and others, and operands that are slices of larger tensors.
#include <heddle/abi/norm_ops.h>

#include "heddle/device.hpp"
#include "op_cases.h"

namespace heddle::conformance {

namespace {

std::string named(const char* op, heddle_dtype in, heddle_dtype out, const std::string& what) {
  return label(op, device::cat(device::dtype_name(in), " to ", device::dtype_name(out), " ", what));
}

void add_modulated(Random& random, heddle_dtype in, heddle_dtype out, std::vector<OpCase>& cases) {
  const auto attrs = bytes_of(heddle_norm_attrs{1e-6});
  const auto x = [&](Shape shape) {
    return filled(random, HostTensor::slice(in, std::move(shape), 4), 3);
  };
  const auto row = [&](Shape shape) {
    return filled(random, HostTensor(HEDDLE_F32, std::move(shape)));
  };
  for (std::int64_t d : {1, 45, 128, 640, 3072, 5120}) {
    const std::string of = device::cat("of ", d);
    const auto add = [&](const std::string& what, std::optional<HostTensor> scale,
                         std::optional<HostTensor> shift, bool in_place = false) {
      cases.push_back(
          {.name = named(HEDDLE_OP_MODULATED_RMS_NORM, in, out, of + what),
           .op = HEDDLE_OP_MODULATED_RMS_NORM,
           .in = {in_place ? filled(random, HostTensor(in, {2, 3, d}), 3) : x({2, 3, d}),
                  std::move(scale), std::move(shift)},
           .out = {HostTensor(out, {2, 3, d})},
           .attrs = attrs,
           .in_place = in_place && in == out});
    };
    add("", row({1, 1, d}), row({1, 1, d}), true);
    add(" of items", row({2, 1, d}), row({2, 1, d}));
    add(" of tokens", row({1, 3, d}), row({1, 1, d}));
    add(" and other tokens", row({1, 1, d}), x({2, 3, d}));
    add(" shift only", std::nullopt, row({2, 3, d}));
    add(" scale only", row({1, 1, d}), std::nullopt);
    add(" plain", std::nullopt, std::nullopt);
  }
}

struct TurnedSizes {
  std::int64_t heads, width;
  std::int32_t head, pairs;
};

void add_turned(Random& random, heddle_dtype in, heddle_dtype out, std::vector<OpCase>& cases) {
  for (const TurnedSizes& s :
       {TurnedSizes{3, 2, 2, 1}, TurnedSizes{2, 26, 26, 12}, TurnedSizes{3, 64, 64, 32},
        TurnedSizes{5, 128, 128, 48}, TurnedSizes{2, 96, 96, 48}, TurnedSizes{1, 256, 32, 16},
        TurnedSizes{1, 320, 64, 32}, TurnedSizes{1, 2048, 64, 32}, TurnedSizes{1, 4096, 128, 64},
        TurnedSizes{1, 5120, 128, 48}, TurnedSizes{1, 288, 36, 18}, TurnedSizes{1, 48, 2, 1}}) {
    const std::int64_t tokens = 5, columns = s.width / s.head * s.pairs;
    const auto attrs = bytes_of(heddle_norm_rope_half_attrs{1e-6, s.head, s.pairs});
    const std::string of = device::cat(s.heads, " of ", s.width, " by ", s.head, " with ", s.pairs);
    const auto table = [&] { return filled(random, HostTensor(HEDDLE_F32, {tokens, columns})); };
    const Shape shape{2, tokens, s.heads, s.width};
    for (const bool norms : {true, false})
      for (const bool in_place : {true, false}) {
        const std::string how =
            device::cat(norms ? "" : " rotation only", in_place ? " in place" : "");
        cases.push_back(
            {.name = named(HEDDLE_OP_NORM_ROPE_HALF, in, out, of + how),
             .op = HEDDLE_OP_NORM_ROPE_HALF,
             .in = {filled(random, in_place ? HostTensor(in, shape)
                                            : HostTensor::slice(in, shape, s.width)),
                    norms ? std::optional(filled(random, HostTensor(HEDDLE_F32, {s.width})))
                          : std::nullopt,
                    table(), table()},
             .out = {HostTensor(out, shape)},
             .attrs = attrs,
             .in_place = in_place && in == out,
             .item_inputs = {0}});
      }
  }
}

}  // namespace

void add_rms_norm_cases(Random& random, std::vector<OpCase>& cases) {
  for (heddle_dtype type : kFloats)
    for (heddle_dtype out :
         {type, type == HEDDLE_F32 ? heddle_dtype{HEDDLE_BF16} : heddle_dtype{HEDDLE_F32}}) {
      add_modulated(random, type, out, cases);
      add_turned(random, type, out, cases);
    }
}

}  // namespace heddle::conformance
