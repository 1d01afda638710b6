// Norms over rows, heads and groups of channels.
#include "heddle/device.hpp"
#include "op_cases.h"

namespace heddle::conformance {

namespace {

// More rows than a device computes at a time, and rows so long that a kernel keeps less of them.
void add_large_norm_cases(Random& random, std::vector<OpCase>& cases) {
  const auto attrs = bytes_of(heddle_norm_attrs{1e-6});
  for (heddle_dtype in : kFloats) {
    const std::string type = device::dtype_name(in);
    const auto make = [&](Shape shape) {
      return filled(random, HostTensor(in, std::move(shape)), 3);
    };
    for (const Shape& shape : {Shape{2, 250, 264}, Shape{1, 3, 1544}, Shape{1, 3, 5120}})
      cases.push_back(
          {.name = label(HEDDLE_OP_MODULATED_NORM,
                         device::cat(shape[0] * shape[1], " rows of ", shape[2], ", ", type)),
           .op = HEDDLE_OP_MODULATED_NORM,
           .in = {make(shape), make({shape[0], 1, shape[2]}), make({shape[0], 1, shape[2]})},
           .out = {HostTensor(in == HEDDLE_F32 ? heddle_dtype{HEDDLE_BF16} : in, shape)},
           .attrs = attrs});
    for (std::int64_t width : {64, 96, 264, 384, 1032})
      cases.push_back(
          {.name = label(HEDDLE_OP_RMS_NORM, device::cat("500 rows of ", width, ", ", type)),
           .op = HEDDLE_OP_RMS_NORM,
           .in = {make({500, width}), make({width})},
           .out = {HostTensor(in, {500, width})},
           .attrs = attrs,
           .in_place = true});
    cases.push_back({.name = label(HEDDLE_OP_GROUP_NORM, "400 pixels, " + type),
                     .op = HEDDLE_OP_GROUP_NORM,
                     .in = {make({2, 20, 20, 64}), make({64}), make({64})},
                     .out = {HostTensor(in, {2, 20, 20, 64})},
                     .attrs = bytes_of(heddle_group_norm_attrs{1e-6, 32, HEDDLE_ACT_SILU})});
  }
}

std::string types_of(heddle_dtype in, heddle_dtype out) {
  return device::cat(device::dtype_name(in), " to ", device::dtype_name(out));
}

void add_row_norm_cases(Random& random, heddle_dtype in, heddle_dtype out,
                        std::vector<OpCase>& cases) {
  const auto attrs = bytes_of(heddle_norm_attrs{1e-6});
  const std::string types = types_of(in, out);
  const auto x = [&](Shape shape) {
    return filled(random, HostTensor::slice(in, std::move(shape), 4), 3);
  };
  const auto vector = [&](std::int64_t d) { return filled(random, HostTensor(HEDDLE_F32, {d})); };
  for (std::int64_t d : {1, 48, 333, 3072}) {
    const std::string size = device::cat(types, " of ", d);
    cases.push_back({.name = label(HEDDLE_OP_LAYER_NORM, size),
                     .op = HEDDLE_OP_LAYER_NORM,
                     .in = {x({2, 3, d}), vector(d), vector(d)},
                     .out = {HostTensor(out, {2, 3, d})},
                     .attrs = attrs,
                     .item_inputs = {0}});
    cases.push_back({.name = label(HEDDLE_OP_LAYER_NORM, size + " plain"),
                     .op = HEDDLE_OP_LAYER_NORM,
                     .in = {x({5, d}), std::nullopt, std::nullopt},
                     .out = {HostTensor(out, {5, d})},
                     .attrs = attrs,
                     .item_inputs = {0}});
    cases.push_back({.name = label(HEDDLE_OP_LAYER_NORM, size + " bias only"),
                     .op = HEDDLE_OP_LAYER_NORM,
                     .in = {x({5, d}), std::nullopt, vector(d)},
                     .out = {HostTensor(out, {5, d})},
                     .attrs = attrs});
    cases.push_back({.name = label(HEDDLE_OP_RMS_NORM, size),
                     .op = HEDDLE_OP_RMS_NORM,
                     .in = {x({2, 3, d}), vector(d)},
                     .out = {HostTensor(out, {2, 3, d})},
                     .attrs = attrs,
                     .item_inputs = {0}});
    cases.push_back({.name = label(HEDDLE_OP_RMS_NORM, size + " plain"),
                     .op = HEDDLE_OP_RMS_NORM,
                     .in = {x({2, 3, d}), std::nullopt},
                     .out = {HostTensor(out, {2, 3, d})},
                     .attrs = attrs});
    for (std::int64_t items : {1, 2})
      cases.push_back(
          {.name = label(HEDDLE_OP_MODULATED_NORM, device::cat(size, " of ", items, " items")),
           .op = HEDDLE_OP_MODULATED_NORM,
           .in = {x({2, 3, d}), x({items, 1, d}), x({1, 1, d})},
           .out = {HostTensor(out, {2, 3, d})},
           .attrs = attrs,
           .item_inputs =
               items == 1 ? std::vector<std::uint32_t>{0} : std::vector<std::uint32_t>{0, 1}});
  }
}

void add_norm_rope_cases(Random& random, heddle_dtype in, heddle_dtype out,
                         std::vector<OpCase>& cases) {
  const auto attrs = bytes_of(heddle_norm_attrs{1e-6});
  const std::string types = types_of(in, out);
  const auto vector = [&](std::int64_t d) { return filled(random, HostTensor(HEDDLE_F32, {d})); };
  const auto table = [&](std::int64_t s, std::int64_t pairs) {
    return filled(random, HostTensor(HEDDLE_F32, {s, pairs}));
  };
  for (std::int64_t d : {2, 24, 64, 96, 128}) {
    // Part of a fused projection: strides along all axes but the last.
    const auto heads = [&] { return filled(random, HostTensor::slice(in, {2, 5, 3, d}, d)); };
    const std::string size = device::cat(types, " of ", d);
    cases.push_back({.name = label(HEDDLE_OP_NORM_ROPE, size),
                     .op = HEDDLE_OP_NORM_ROPE,
                     .in = {heads(), vector(d), table(5, d / 2), table(5, d / 2)},
                     .out = {HostTensor(out, {2, 5, 3, d})},
                     .attrs = attrs,
                     .item_inputs = {0}});
    cases.push_back({.name = label(HEDDLE_OP_NORM_ROPE, size + " rotation only"),
                     .op = HEDDLE_OP_NORM_ROPE,
                     .in = {heads(), std::nullopt, table(5, d / 2), table(5, d / 2)},
                     .out = {HostTensor(out, {2, 5, 3, d})},
                     .attrs = attrs});
    cases.push_back({.name = label(HEDDLE_OP_NORM_ROPE, size + " norm only"),
                     .op = HEDDLE_OP_NORM_ROPE,
                     .in = {heads(), vector(d), std::nullopt, std::nullopt},
                     .out = {HostTensor(out, {2, 5, 3, d})},
                     .attrs = attrs});
    const auto alone = [&] { return filled(random, HostTensor(in, {2, 5, 3, d})); };
    for (const bool normed : {true, false})
      cases.push_back(
          {.name = label(HEDDLE_OP_NORM_ROPE, size + (normed ? " in place" : " rotation in place")),
           .op = HEDDLE_OP_NORM_ROPE,
           .in = {alone(), normed ? std::optional(vector(d)) : std::nullopt, table(5, d / 2),
                  table(5, d / 2)},
           .out = {HostTensor(out, {2, 5, 3, d})},
           .attrs = attrs,
           .in_place = in == out});
  }
  // More heads than are computed at a time.
  cases.push_back({.name = label(HEDDLE_OP_NORM_ROPE, types + " of 128, 43 heads"),
                   .op = HEDDLE_OP_NORM_ROPE,
                   .in = {filled(random, HostTensor::slice(in, {1, 3, 43, 128}, 128)), vector(128),
                          table(3, 64), table(3, 64)},
                   .out = {HostTensor(out, {1, 3, 43, 128})},
                   .attrs = attrs});
}

void add_group_norm_cases(Random& random, heddle_dtype in, heddle_dtype out,
                          std::vector<OpCase>& cases) {
  const std::string types = types_of(in, out);
  const auto vector = [&](std::int64_t d) { return filled(random, HostTensor(HEDDLE_F32, {d})); };
  for (heddle_activation kind : {HEDDLE_ACT_NONE, HEDDLE_ACT_SILU})
    for (std::int32_t groups : {1, 8, 32})
      cases.push_back(
          {.name = label(HEDDLE_OP_GROUP_NORM,
                         device::cat(types, " ", groups, " groups, activation ", kind)),
           .op = HEDDLE_OP_GROUP_NORM,
           .in = {filled(random, HostTensor(in, {2, 7, 9, 64}), 2), vector(64), vector(64)},
           .out = {HostTensor(out, {2, 7, 9, 64})},
           .attrs = bytes_of(heddle_group_norm_attrs{1e-6, groups, kind}),
           .item_inputs = {0}});
}

}  // namespace

void add_norm_cases(Random& random, std::vector<OpCase>& cases) {
  add_large_norm_cases(random, cases);
  for (heddle_dtype in : kFloats)
    for (heddle_dtype out : {in, heddle_dtype{HEDDLE_F32}}) {
      add_row_norm_cases(random, in, out, cases);
      add_norm_rope_cases(random, in, out, cases);
      add_group_norm_cases(random, in, out, cases);
    }
}

}  // namespace heddle::conformance
