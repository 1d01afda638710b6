// The cases of the ops that multiply matrices.
#include <cmath>
#include <limits>

#include "heddle/device.hpp"
#include "op_cases.h"

namespace heddle::conformance {

void add_attention_cases(Random& random, std::vector<OpCase>& cases) {
  struct Sizes {
    std::int64_t batch, queries, keys, heads, d, e;
  };
  // One head of a fused projection (B, S, 3, H, D): a slice along the last axis but one.
  const auto operand = [&](heddle_dtype dtype, std::int64_t b, std::int64_t s, std::int64_t h,
                           std::int64_t d) {
    return filled(random, HostTensor::slice(dtype, {b, s, h, d}, 8));
  };
  const auto add = [&](std::string name, Sizes size, heddle_dtype dtype, std::int32_t causal,
                       std::optional<HostTensor> bias, std::vector<std::uint32_t> item_inputs,
                       float cap = 0) {
    cases.push_back(
        {.name = device::cat(HEDDLE_OP_ATTENTION, " ", name, " ", device::dtype_name(dtype), " ",
                             size.batch, "x", size.queries, "x", size.keys, "x", size.heads, "x",
                             size.d, "x", size.e),
         .op = HEDDLE_OP_ATTENTION,
         .in = {operand(dtype, size.batch, size.queries, size.heads, size.d),
                operand(dtype, size.batch, size.keys, size.heads, size.d),
                operand(dtype, size.batch, size.keys, size.heads, size.e), std::move(bias)},
         .out = {HostTensor(dtype, {size.batch, size.queries, size.heads, size.e})},
         .attrs = bytes_of(
             heddle_attention_attrs{1 / std::sqrt(static_cast<double>(size.d)), causal, cap}),
         .item_inputs = std::move(item_inputs)});
  };
  for (heddle_dtype dtype : kFloats) {
    add("plain", {2, 33, 47, 3, 24, 40}, dtype, 0, std::nullopt, {0, 1, 2});
    add("causal", {1, 70, 70, 2, 64, 64}, dtype, 1, std::nullopt, {});
    add("capped", {2, 41, 41, 2, 24, 24}, dtype, 1, std::nullopt, {0, 1, 2}, 0.5f);
    add("one query", {2, 1, 77, 2, 64, 64}, dtype, 0, std::nullopt, {0, 1, 2});
  }
  add("more queries than tiles are wide", {1, 300, 333, 2, 128, 128}, HEDDLE_F32, 0, std::nullopt,
      {});
  // Large enough for kernels that are not worth preparing for less: the head sizes that models
  // have, and shapes that no tile divides.
  for (heddle_dtype dtype : {HEDDLE_BF16, HEDDLE_F16}) {
    add("large", {2, 300, 333, 2, 128, 128}, dtype, 0, std::nullopt, {0, 1, 2});
    add("large", {1, 512, 390, 2, 64, 64}, dtype, 0, std::nullopt, {});
    add("large", {1, 290, 333, 2, 96, 96}, dtype, 0, std::nullopt, {});
    add("large", {1, 290, 333, 2, 72, 72}, dtype, 0, std::nullopt, {});
    add("long heads", {2, 300, 333, 1, 512, 256}, dtype, 0, std::nullopt, {0, 1, 2});
  }
  add("causal with a past", {2, 9, 40, 2, 16, 16}, HEDDLE_F32, 1, std::nullopt, {0, 1, 2});
  add("causal, some queries see nothing", {1, 20, 11, 2, 16, 16}, HEDDLE_F32, 1, std::nullopt, {});
  for (Shape shape : {Shape{1, 3, 21, 30}, Shape{2, 1, 21, 30}, Shape{2, 3, 21, 30}}) {
    HostTensor bias = filled(random, HostTensor::slice(HEDDLE_F32, shape, 1));
    for (std::int64_t i = 0; i < bias.count(); i += 5)
      bias.set(i, -std::numeric_limits<double>::infinity());
    add("bias", {2, 21, 30, 3, 32, 32}, HEDDLE_F32, 0, bias,
        shape[0] == 2 ? std::vector<std::uint32_t>{0, 1, 2, 3}
                      : std::vector<std::uint32_t>{0, 1, 2});
  }
  add("no keys", {1, 4, 0, 2, 8, 8}, HEDDLE_F32, 0, std::nullopt, {});
}

namespace {

struct LinearCase {
  Shape x;
  std::int64_t n;
  heddle_dtype in, weight, out;
  heddle_activation kind;
  bool bias, residual, plain = false;  // plain: the matrix is an ordinary tensor
};

std::vector<LinearCase> linear_table() {
  std::vector<LinearCase> table = {
      {{2, 77, 320}, 640, HEDDLE_F32, HEDDLE_F16, HEDDLE_F32, HEDDLE_ACT_NONE, true, false},
      {{1, 130, 256}, 770, HEDDLE_F32, HEDDLE_F32, HEDDLE_F32, HEDDLE_ACT_GELU_TANH, true, false},
      {{2, 5, 7}, 3, HEDDLE_F32, HEDDLE_F32, HEDDLE_F32, HEDDLE_ACT_NONE, false, false},
      {{3, 768}, 1537, HEDDLE_F32, HEDDLE_BF16, HEDDLE_F32, HEDDLE_ACT_SILU, true, false},
      // Many rows of one column: a single sum may be near 0, where the error of its terms is all of
      // it.
      {{66, 40}, 1, HEDDLE_F32, HEDDLE_F32, HEDDLE_F32, HEDDLE_ACT_NONE, true, true},
      {{17, 40}, 130, HEDDLE_F32, HEDDLE_F32, HEDDLE_F32, HEDDLE_ACT_NONE, true, true},
      {{150, 1}, 5, HEDDLE_F32, HEDDLE_F32, HEDDLE_F32, HEDDLE_ACT_NONE, false, true},
      {{64}, 65, HEDDLE_F32, HEDDLE_F32, HEDDLE_F32, HEDDLE_ACT_RELU, true, false},
      {{2, 3, 4, 48}, 50, HEDDLE_F32, HEDDLE_F64, HEDDLE_F32, HEDDLE_ACT_NONE, true, true},
      {{0, 16}, 8, HEDDLE_F32, HEDDLE_F32, HEDDLE_F32, HEDDLE_ACT_NONE, true, false},
      {{1, 9, 2048}, 96, HEDDLE_F32, HEDDLE_F8_E4M3, HEDDLE_F32, HEDDLE_ACT_NONE, true, true},
      {{1, 9, 64}, 96, HEDDLE_F32, HEDDLE_F8_E5M2, HEDDLE_F32, HEDDLE_ACT_NONE, true, true},
  };
  for (heddle_activation kind = HEDDLE_ACT_NONE; kind <= HEDDLE_ACT_TANH; ++kind)
    table.push_back(
        {{2, 50, 96}, 200, HEDDLE_F32, HEDDLE_F32, HEDDLE_F32, kind, true, kind % 2 == 0});
  for (heddle_dtype in : kFloats)
    for (heddle_dtype weight : kFloats)
      for (heddle_dtype out : kFloats)
        table.push_back({{2, 19, 72}, 88, in, weight, out, HEDDLE_ACT_SILU, true, true});
  for (heddle_dtype weight : kFloats)
    table.push_back(
        {{2, 30, 450}, 70, HEDDLE_F32, weight, HEDDLE_F32, HEDDLE_ACT_NONE, true, true, true});
  table.push_back(
      {{1, 40}, 33, HEDDLE_BF16, HEDDLE_BF16, HEDDLE_BF16, HEDDLE_ACT_NONE, false, false, true});
  // Several tiles each way, the last ones smaller, with terms in whole blocks.
  for (heddle_dtype out : {HEDDLE_BF16, HEDDLE_F32}) {
    table.push_back(
        {{2, 130, 96}, 600, HEDDLE_BF16, HEDDLE_BF16, out, HEDDLE_ACT_GELU_TANH, true, true});
    table.push_back(
        {{2, 3, 16, 64}, 50, HEDDLE_BF16, HEDDLE_F16, out, HEDDLE_ACT_NONE, true, false});
  }
  return table;
}

// Of matrices that stay narrow: in blocks, and of eight bits.
void add_narrow_matrices(std::vector<LinearCase>& table) {
  // Matrices in blocks: few rows, some, several tiles; terms that are no multiple of a stretch.
  for (heddle_dtype weight = HEDDLE_Q8_0; weight <= HEDDLE_I4_GROUPED; ++weight) {
    const std::int64_t k = weight >= HEDDLE_Q4_K ? 768 : 416;
    table.push_back({{3, k}, 70, HEDDLE_F32, weight, HEDDLE_F32, HEDDLE_ACT_NONE, true, true});
    table.push_back({{2, 19, k}, 45, HEDDLE_F32, weight, HEDDLE_F32, HEDDLE_ACT_SILU, true, false});
    table.push_back(
        {{2, 17, k}, 96, HEDDLE_BF16, weight, HEDDLE_BF16, HEDDLE_ACT_NONE, true, true});
    table.push_back(
        {{2, 19, k}, 45, HEDDLE_F32, weight, HEDDLE_F32, HEDDLE_ACT_NONE, true, false, true});
  }
  table.push_back(
      {{1, 220, 512}, 600, HEDDLE_F32, HEDDLE_Q8_0, HEDDLE_F32, HEDDLE_ACT_NONE, true, false});
  table.push_back(
      {{1, 220, 512}, 600, HEDDLE_F32, HEDDLE_Q4_K, HEDDLE_F32, HEDDLE_ACT_NONE, true, false});
  for (heddle_dtype weight : {HEDDLE_F8_E4M3, HEDDLE_F8_E5M2}) {
    table.push_back({{3, 70}, 70, HEDDLE_F32, weight, HEDDLE_F32, HEDDLE_ACT_NONE, true, true});
    table.push_back(
        {{2, 110, 420}, 150, HEDDLE_F32, weight, HEDDLE_F32, HEDDLE_ACT_NONE, true, false});
    table.push_back(
        {{2, 19, 72}, 88, HEDDLE_BF16, weight, HEDDLE_BF16, HEDDLE_ACT_NONE, true, false});
    table.push_back(
        {{2, 19, 72}, 45, HEDDLE_F32, weight, HEDDLE_F32, HEDDLE_ACT_NONE, true, false, true});
  }
}

// Biases as devices keep them beside products, which add them to what has their compute type.
void add_bias_cases(Random& random, std::vector<OpCase>& cases) {
  for (const heddle_dtype type : kFloats)
    for (const bool residual : {false, true})
      for (const heddle_activation kind :
           {HEDDLE_ACT_NONE, HEDDLE_ACT_GELU_TANH, HEDDLE_ACT_SILU}) {
        const Shape x{2, 40, 64}, out{2, 40, 96};
        OpCase made{.name = device::cat(HEDDLE_OP_LINEAR, " ", device::dtype_name(type),
                                        " with a bias of its own layout, activation ", kind,
                                        residual ? ", residual" : ""),
                    .op = HEDDLE_OP_LINEAR,
                    .in = {filled(random, HostTensor(type, x)),
                           filled(random, HostTensor(type, {96, 64}), 0.125),
                           filled(random, HostTensor(HEDDLE_F32, {96})), std::nullopt},
                    .out = {HostTensor(type, out)},
                    .attrs = bytes_of(heddle_activation_attrs{kind}),
                    .weight = OpCase::Weight{2, HEDDLE_USE_BIAS}};
        if (residual) made.in[3] = filled(random, HostTensor(type, out));
        cases.push_back(std::move(made));
      }
}

}  // namespace

void add_linear_cases(Random& random, std::vector<OpCase>& cases) {
  std::vector<LinearCase> table = linear_table();
  add_narrow_matrices(table);
  for (const LinearCase& one : table) {
    Shape out_shape = one.x;
    out_shape.back() = one.n;
    const double deviation = 1 / std::sqrt(static_cast<double>(one.x.back()));
    OpCase made{.name = device::cat(HEDDLE_OP_LINEAR, " ", cases.size()),
                .op = HEDDLE_OP_LINEAR,
                .in = {filled(random, HostTensor::slice(one.in, one.x, 8)),
                       filled(random, HostTensor(one.weight, {one.n, one.x.back()}), deviation),
                       std::nullopt, std::nullopt},
                .out = {HostTensor::slice(one.out, out_shape, 4)},
                .attrs = bytes_of(heddle_activation_attrs{one.kind}),
                .weight = OpCase::Weight{1, HEDDLE_USE_LINEAR}};
    made.name =
        device::cat(HEDDLE_OP_LINEAR, " ", device::describe(made.in[0]->info()), " by ",
                    device::describe(made.in[1]->info()), " to ", device::dtype_name(one.out),
                    ", activation ", one.kind, one.bias ? ", bias" : "",
                    one.residual ? ", residual" : "", one.plain ? ", plain" : "");
    if (one.plain) made.weight.reset();
    if (one.bias) made.in[2] = filled(random, HostTensor(HEDDLE_F32, {one.n}));
    if (one.residual) made.in[3] = filled(random, HostTensor::slice(one.out, out_shape, 2));
    if (one.x.size() > 1)
      made.item_inputs =
          one.residual ? std::vector<std::uint32_t>{0, 3} : std::vector<std::uint32_t>{0};
    cases.push_back(std::move(made));
  }
  add_bias_cases(random, cases);
}

namespace {

struct ConvCase {
  Shape x, filter;
  heddle_conv2d_attrs attrs;
  heddle_dtype in, weight, out;
  bool bias, residual;
};

constexpr heddle_conv2d_attrs kSame{{1, 1}, {1, 1, 1, 1}}, kPoint{{1, 1}, {0, 0, 0, 0}},
    kDown{{2, 2}, {1, 1, 1, 1}};

std::vector<ConvCase> conv_table() {
  std::vector<ConvCase> table = {
      {{2, 17, 19, 32}, {48, 32, 3, 3}, kSame, HEDDLE_F32, HEDDLE_F16, HEDDLE_F32, true, true},
      {{1, 64, 64, 32}, {32, 32, 3, 3}, kSame, HEDDLE_F32, HEDDLE_F32, HEDDLE_F32, true, false},
      {{2, 9, 9, 4}, {32, 4, 3, 3}, kSame, HEDDLE_F32, HEDDLE_F32, HEDDLE_F32, true, false},
      {{1, 12, 11, 64}, {3, 64, 3, 3}, kSame, HEDDLE_F32, HEDDLE_F32, HEDDLE_F32, true, false},
      {{2, 8, 6, 40}, {24, 40, 1, 1}, kPoint, HEDDLE_F32, HEDDLE_F32, HEDDLE_F32, true, true},
      {{1, 16, 15, 16}, {32, 16, 3, 3}, kDown, HEDDLE_F32, HEDDLE_F32, HEDDLE_F32, true, false},
      {{2, 16, 16, 16},
       {16, 16, 3, 3},
       {{2, 2}, {0, 0, 1, 1}},
       HEDDLE_F32,
       HEDDLE_F32,
       HEDDLE_F32,
       false,
       false},
      {{1, 14, 28, 3},
       {20, 3, 14, 14},
       {{14, 14}, {0, 0, 0, 0}},
       HEDDLE_F32,
       HEDDLE_F32,
       HEDDLE_F32,
       true,
       false},
      {{1, 9, 8, 6},
       {10, 6, 4, 2},
       {{3, 1}, {2, 0, 1, 1}},
       HEDDLE_F32,
       HEDDLE_F32,
       HEDDLE_F32,
       true,
       true},
      {{1, 1, 1, 1}, {1, 1, 1, 1}, kPoint, HEDDLE_F32, HEDDLE_F32, HEDDLE_F32, false, false},
  };
  for (heddle_dtype type : kFloats)
    for (heddle_dtype out : kFloats)
      table.push_back({{2, 10, 10, 24}, {40, 24, 3, 3}, kSame, type, HEDDLE_BF16, out, true, true});
  // Several tiles of lines, the first and the last at the padding.
  table.push_back(
      {{2, 40, 48, 32}, {72, 32, 3, 3}, kSame, HEDDLE_BF16, HEDDLE_F16, HEDDLE_BF16, true, true});
  table.push_back(
      {{2, 50, 41, 16}, {32, 16, 3, 3}, kDown, HEDDLE_BF16, HEDDLE_BF16, HEDDLE_BF16, true, false});
  table.push_back(
      {{1, 9, 8, 6}, {10, 6, 1, 1}, kPoint, HEDDLE_BF16, HEDDLE_BF16, HEDDLE_BF16, true, true});
  // Few channels of a result, from tiles that the picture does not fill.
  for (heddle_dtype type : {HEDDLE_BF16, HEDDLE_F16}) {
    table.push_back({{2, 9, 35, 48}, {3, 48, 3, 3}, kSame, type, type, HEDDLE_F32, true, false});
    table.push_back(
        {{1, 17, 40, 80}, {8, 80, 3, 2}, {{1, 1}, {2, 0, 1, 1}}, type, type, type, false, false});
    table.push_back({{1, 8, 6, 144}, {4, 144, 1, 1}, kPoint, type, type, type, true, false});
  }
  // Large enough for kernels that are not worth preparing for less.
  for (heddle_dtype type : {HEDDLE_BF16, HEDDLE_F16}) {
    table.push_back({{2, 33, 40, 64}, {64, 64, 3, 3}, kSame, type, type, type, true, true});
    table.push_back({{1, 66, 81, 64}, {64, 64, 3, 3}, kDown, type, type, type, true, false});
    table.push_back(
        {{1, 65, 66, 64}, {64, 64, 3, 3}, {{2, 2}, {0, 0, 1, 1}}, type, type, type, false, true});
    table.push_back({{1, 80, 70, 128}, {72, 128, 1, 1}, kPoint, type, type, type, true, true});
    table.push_back({{1, 96, 96, 128}, {3, 128, 3, 3}, kSame, type, type, HEDDLE_F32, true, false});
  }
  return table;
}

void add_conv_cases(Random& random, std::vector<OpCase>& cases) {
  for (const ConvCase& one : conv_table()) {
    const std::int64_t h =
        (one.x[1] + one.attrs.padding[0] + one.attrs.padding[2] - one.filter[2]) /
            one.attrs.stride[0] +
        1;
    const std::int64_t w =
        (one.x[2] + one.attrs.padding[1] + one.attrs.padding[3] - one.filter[3]) /
            one.attrs.stride[1] +
        1;
    const Shape out_shape{one.x[0], h, w, one.filter[0]};
    const double deviation =
        1 / std::sqrt(static_cast<double>(one.filter[1] * one.filter[2] * one.filter[3]));
    OpCase made{.name = "",
                .op = HEDDLE_OP_CONV2D,
                .in = {filled(random, HostTensor(one.in, one.x)),
                       filled(random, HostTensor(one.weight, one.filter), deviation), std::nullopt,
                       std::nullopt},
                .out = {HostTensor(one.out, out_shape)},
                .attrs = bytes_of(one.attrs),
                .weight = OpCase::Weight{1, HEDDLE_USE_CONV2D}};
    made.name =
        device::cat(HEDDLE_OP_CONV2D, " ", device::describe(made.in[0]->info()), " by ",
                    device::describe(made.in[1]->info()), " to ", device::dtype_name(one.out),
                    one.bias ? ", bias" : "", one.residual ? ", residual" : "");
    if (one.bias) made.in[2] = filled(random, HostTensor(HEDDLE_F32, {one.filter[0]}));
    if (one.residual) made.in[3] = filled(random, HostTensor(one.out, out_shape));
    if (one.x[0] > 1)
      made.item_inputs =
          one.residual ? std::vector<std::uint32_t>{0, 3} : std::vector<std::uint32_t>{0};
    cases.push_back(std::move(made));
  }
}

void add_depthwise_cases(Random& random, std::vector<OpCase>& cases) {
  struct Depthwise {
    Shape x, filter, out;
    heddle_conv2d_attrs attrs;
    bool bias;
  };
  const Depthwise table[] = {
      {{2, 9, 11, 24}, {3, 3, 24}, {2, 9, 11, 24}, kSame, true},
      {{1, 7, 5, 21}, {5, 3, 21}, {1, 7, 5, 21}, {{1, 1}, {2, 1, 2, 1}}, true},
      {{2, 10, 9, 16}, {3, 2, 16}, {2, 5, 8, 16}, {{2, 1}, {1, 0, 1, 0}}, false}};
  for (const Depthwise& one : table)
    for (heddle_dtype type : kFloats) {
      OpCase made{.name = device::cat(HEDDLE_OP_DEPTHWISE_CONV2D, " ", device::dtype_name(type),
                                      " by ", one.filter[0], "x", one.filter[1]),
                  .op = HEDDLE_OP_DEPTHWISE_CONV2D,
                  .in = {filled(random, HostTensor::slice(type, one.x, 8)),
                         filled(random, HostTensor(type, one.filter), 0.3), std::nullopt},
                  .out = {HostTensor::slice(type, one.out, 8)},
                  .attrs = bytes_of(one.attrs)};
      if (one.bias) made.in[2] = filled(random, HostTensor(HEDDLE_F32, {one.filter[2]}));
      if (one.x[0] > 1) made.item_inputs = {0};
      cases.push_back(std::move(made));
    }
}

}  // namespace

void add_image_cases(Random& random, std::vector<OpCase>& cases) {
  add_conv_cases(random, cases);
  add_depthwise_cases(random, cases);
  // A slice of the channels, as after joining two pictures along them.
  cases.push_back({.name = device::cat(HEDDLE_OP_CONV2D, " slices of channels"),
                   .op = HEDDLE_OP_CONV2D,
                   .in = {filled(random, HostTensor::slice(HEDDLE_F32, {1, 8, 8, 16}, 8)),
                          filled(random, HostTensor(HEDDLE_F32, {16, 16, 3, 3}), 0.1), std::nullopt,
                          std::nullopt},
                   .out = {HostTensor::slice(HEDDLE_F32, {1, 8, 8, 16}, 4)},
                   .attrs = bytes_of(kSame),
                   .weight = OpCase::Weight{1, HEDDLE_USE_CONV2D}});
  for (heddle_dtype type : kFloats)
    for (std::int64_t f : {1, 2, 3})
      cases.push_back(
          {.name = device::cat(HEDDLE_OP_UPSAMPLE_NEAREST, " ", device::dtype_name(type), " ", f),
           .op = HEDDLE_OP_UPSAMPLE_NEAREST,
           .in = {filled(random, HostTensor(type, {2, 5, 6, 36}))},
           .out = {HostTensor::slice(type, {2, 5 * f, 6 * 2, 36}, 4)},
           .item_inputs = {0}});
}

}  // namespace heddle::conformance
