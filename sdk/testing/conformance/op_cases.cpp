#include "op_cases.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <map>

#include "heddle/device.hpp"

namespace heddle::conformance {

namespace {

// Random blocks, whose scales are such that numbers have about this deviation.
// Random bytes would have scales and numbers of f8_e4m3 that are none, and powers of 2 of any size.
void without_nans(heddle_dtype type, std::byte* block, double deviation) {
  const bool is_mx = type == HEDDLE_MXFP8;
  if (!is_mx && type != HEDDLE_NVFP4 && type != HEDDLE_I4_CODED) return;
  const std::size_t first = is_mx ? 8 : 4, last = is_mx ? 264 : 20;
  // Without the third bit of their exponent, scales also without a sign: a deviation of 9.4.
  for (std::size_t i = first; i < last; ++i) block[i] &= std::byte(is_mx ? 0xdf : 0x5f);
  const auto power = std::byte(127 + std::lround(std::log2(deviation / 9.4)));
  for (std::size_t i = 0; is_mx && i < first; ++i) block[i] = power;
}

HostTensor filled_blocks(Random& random, HostTensor tensor, double deviation) {
  struct Scales {
    std::vector<std::size_t> at;  // of halves, or of an f32, in a block
    std::vector<double> of;       // what each is for a deviation of 1
  };
  static const std::map<heddle_dtype, Scales> kScales = {
      {HEDDLE_Q8_0, {{0}, {1 / 74.0}}},
      {HEDDLE_Q4_0, {{0}, {1 / 4.6}}},
      {HEDDLE_Q4_1, {{0, 2}, {1 / 4.6, -7.5 / 4.6}}},
      {HEDDLE_Q5_0, {{0}, {1 / 9.2}}},
      {HEDDLE_Q5_1, {{0, 2}, {1 / 9.2, -15.5 / 9.2}}},
      {HEDDLE_Q4_K, {{0, 2}, {1 / 200.0, 7.5 / 200}}},
      {HEDDLE_Q5_K, {{0, 2}, {1 / 400.0, 15.5 / 400}}},
      {HEDDLE_Q6_K, {{208}, {1 / 1400.0}}},
      {HEDDLE_I8_SCALED, {{0}, {1 / 74.0}}},
      {HEDDLE_I8_ROTATED, {{0}, {1 / 74.0}}},
      {HEDDLE_NVFP4, {{0}, {1 / 27.0}}},
      {HEDDLE_I4_ROTATED, {{0}, {1 / 4.6}}},
      {HEDDLE_I4_CODED, {{0}, {1 / 5.3}}},
      {HEDDLE_MXFP8, {{}, {}}},
      {HEDDLE_I4_GROUPED,
       {{0, 4, 8, 12, 16, 20, 24, 28},
        {1 / 4.6, 1 / 4.6, 1 / 4.6, 1 / 4.6, 0.5 / 4.6, 0.5 / 4.6, 0.5 / 4.6, 0.5 / 4.6}}}};
  const heddle_dtype type = tensor.info().dtype;
  const Scales& scales = kScales.at(type);
  const auto block_bytes = static_cast<std::size_t>(device::block_bytes(type));
  const auto bytes = static_cast<std::size_t>(device::bytes_of(type, tensor.count()));
  std::byte* const data = tensor.memory().data() + tensor.origin();
  for (std::size_t i = 0; i < bytes; ++i) data[i] = static_cast<std::byte>(random());
  for (std::size_t block = 0; block < bytes; block += block_bytes) {
    without_nans(type, data + block, deviation);
    const double varied = 0.5 + static_cast<double>(random() % 1024) / 1024;
    for (std::size_t s = 0; s < scales.at.size(); ++s) {
      const bool wide = type >= HEDDLE_I8_SCALED;
      HostTensor scale(wide ? HEDDLE_F32 : HEDDLE_F16, {1});
      scale.set(0, scales.of[s] * deviation * varied);
      std::memcpy(data + block + scales.at[s], scale.memory().data() + scale.origin(),
                  wide ? 4 : 2);
    }
  }
  return tensor;
}

}  // namespace

HostTensor filled(Random& random, HostTensor tensor, double deviation) {
  if (device::is_block_format(tensor.info().dtype))
    return filled_blocks(random, std::move(tensor), deviation);
  std::normal_distribution<double> normal(0, deviation);
  for (std::int64_t i = 0; i < tensor.count(); ++i) tensor.set(i, normal(random));
  return tensor;
}

std::vector<OpCase> make_op_cases(std::uint64_t seed) {
  Random random(seed);
  std::vector<OpCase> cases;
  add_elementwise_cases(random, cases);
  add_copy_cases(random, cases);
  add_norm_cases(random, cases);
  add_table_cases(random, cases);
  add_attention_cases(random, cases);
  add_linear_cases(random, cases);
  add_fp8_cases(random, cases);
  add_image_cases(random, cases);
  return cases;
}

namespace {

void add_broadcast_cases(Random& random, std::vector<OpCase>& cases) {
  const auto make = [&](heddle_dtype dtype, Shape shape) {
    return filled(random, HostTensor(dtype, std::move(shape)), 2);
  };
  const auto slice = [&](heddle_dtype dtype, Shape shape) {
    return filled(random, HostTensor::slice(dtype, std::move(shape), 3), 2);
  };
  for (const char* op : {HEDDLE_OP_ADD, HEDDLE_OP_MUL}) {
    for (heddle_dtype a : kFloats)
      for (heddle_dtype b : kFloats)
        for (heddle_dtype out : kFloats)
          cases.push_back(
              {.name = label(op, device::cat(device::dtype_name(a), " ", device::dtype_name(b),
                                             " to ", device::dtype_name(out))),
               .op = op,
               .in = {make(a, {2, 5, 33}), make(b, {2, 1, 33})},
               .out = {HostTensor(out, {2, 5, 33})},
               .in_place = a == out,
               .item_inputs = {0, 1}});
    cases.push_back({.name = label(op, "outer product of axes"),
                     .op = op,
                     .in = {make(HEDDLE_F32, {7, 1}), make(HEDDLE_F32, {1, 129})},
                     .out = {HostTensor(HEDDLE_F32, {7, 129})}});
    cases.push_back({.name = label(op, "rows by a number each"),
                     .op = op,
                     .in = {slice(HEDDLE_F32, {2, 1, 7, 264}), make(HEDDLE_F32, {2, 1, 7, 1})},
                     .out = {HostTensor(HEDDLE_F32, {2, 1, 7, 264})}});
    cases.push_back({.name = label(op, "slices, long rows"),
                     .op = op,
                     .in = {slice(HEDDLE_F32, {2, 9001}), slice(HEDDLE_F32, {1, 9001})},
                     .out = {HostTensor::slice(HEDDLE_F32, {2, 9001}, 5)}});
    cases.push_back({.name = label(op, "scalars"),
                     .op = op,
                     .in = {make(HEDDLE_F32, {}), make(HEDDLE_F32, {})},
                     .out = {HostTensor(HEDDLE_F32, {})},
                     .in_place = true});
    cases.push_back({.name = label(op, "nothing"),
                     .op = op,
                     .in = {make(HEDDLE_F32, {0, 4}), make(HEDDLE_F32, {1, 4})},
                     .out = {HostTensor(HEDDLE_F32, {0, 4})}});
  }
}

void add_combine_cases(Random& random, std::vector<OpCase>& cases) {
  const auto make = [&](heddle_dtype dtype, Shape shape) {
    return filled(random, HostTensor(dtype, std::move(shape)), 2);
  };
  const auto slice = [&](heddle_dtype dtype, Shape shape) {
    return filled(random, HostTensor::slice(dtype, std::move(shape), 3), 2);
  };
  for (std::uint32_t count = 1; count <= 4; ++count) {
    Operands in;
    for (std::uint32_t i = 0; i < count; ++i)
      in.emplace_back(i % 2 == 0 ? make(HEDDLE_F32, {2, 3, 41}) : slice(HEDDLE_BF16, {2, 3, 41}));
    cases.push_back({.name = label(HEDDLE_OP_COMBINE, device::cat(count, " operands")),
                     .op = HEDDLE_OP_COMBINE,
                     .in = in,
                     .out = {HostTensor(HEDDLE_F32, {2, 3, 41})},
                     .attrs = bytes_of(heddle_combine_attrs{{0.7, -1.3, 0, 2.5}}),
                     .in_place = true});
  }
}

void add_activation_cases(Random& random, std::vector<OpCase>& cases) {
  const auto slice = [&](heddle_dtype dtype, Shape shape) {
    return filled(random, HostTensor::slice(dtype, std::move(shape), 3), 2);
  };
  for (heddle_dtype dtype : kFloats) {
    const std::string type = device::dtype_name(dtype);
    cases.push_back({.name = label(HEDDLE_OP_SCALE_CLAMP, type),
                     .op = HEDDLE_OP_SCALE_CLAMP,
                     .in = {slice(dtype, {3, 4, 19})},
                     .out = {HostTensor(dtype, {3, 4, 19})},
                     .attrs = bytes_of(heddle_scale_clamp_attrs{0.5, 0.5, 0, 1})});
    HostTensor positive = filled(random, HostTensor(dtype, {3, 4, 19}), 2);
    for (std::int64_t i = 0; i < positive.count(); ++i)
      positive.set(i, std::abs(positive.get(i)) + 0.01);
    cases.push_back({.name = label(HEDDLE_OP_RSQRT, type),
                     .op = HEDDLE_OP_RSQRT,
                     .in = {std::move(positive)},
                     .out = {HostTensor(dtype, {3, 4, 19})},
                     .in_place = true});
    cases.push_back({.name = label(HEDDLE_OP_LEAKY_RELU, device::cat("one slope ", type)),
                     .op = HEDDLE_OP_LEAKY_RELU,
                     .in = {filled(random, HostTensor(dtype, {2, 3, 45}), 2)},
                     .out = {HostTensor(dtype, {2, 3, 45})},
                     .attrs = bytes_of(heddle_leaky_relu_attrs{0.2}),
                     .in_place = true});
    cases.push_back({.name = label(HEDDLE_OP_LEAKY_RELU, device::cat("slopes ", type)),
                     .op = HEDDLE_OP_LEAKY_RELU,
                     .in = {slice(dtype, {2, 5, 3, 37}), slice(HEDDLE_F32, {1, 1, 1, 37})},
                     .out = {HostTensor(dtype, {2, 5, 3, 37})},
                     .attrs = bytes_of(heddle_leaky_relu_attrs{0.2})});
    for (heddle_activation kind = HEDDLE_ACT_NONE; kind <= HEDDLE_ACT_TANH; ++kind) {
      cases.push_back({.name = label(HEDDLE_OP_ACTIVATION, device::cat(kind, " ", type)),
                       .op = HEDDLE_OP_ACTIVATION,
                       .in = {filled(random, HostTensor(dtype, {4, 203}), 4)},
                       .out = {HostTensor(dtype, {4, 203})},
                       .attrs = bytes_of(heddle_activation_attrs{kind}),
                       .in_place = true});
      cases.push_back({.name = label(HEDDLE_OP_GATED_ACTIVATION, device::cat(kind, " ", type)),
                       .op = HEDDLE_OP_GATED_ACTIVATION,
                       .in = {slice(dtype, {2, 3, 77}), slice(HEDDLE_F32, {2, 3, 77})},
                       .out = {HostTensor(dtype, {2, 3, 77})},
                       .attrs = bytes_of(heddle_activation_attrs{kind})});
    }
  }
}

void add_gated_add_cases(Random& random, std::vector<OpCase>& cases) {
  const auto make = [&](heddle_dtype dtype, Shape shape) {
    return filled(random, HostTensor(dtype, std::move(shape)), 2);
  };
  const auto slice = [&](heddle_dtype dtype, Shape shape) {
    return filled(random, HostTensor::slice(dtype, std::move(shape), 3), 2);
  };
  for (heddle_dtype dtype : kFloats) {
    const std::string type = device::dtype_name(dtype);
    for (std::int64_t gates : {1, 2})
      cases.push_back({.name = label(HEDDLE_OP_GATED_ADD, device::cat(gates, " gates ", type)),
                       .op = HEDDLE_OP_GATED_ADD,
                       .in = {make(dtype, {2, 7, 65}), slice(HEDDLE_F32, {gates, 1, 65}),
                              slice(dtype, {2, 7, 65})},
                       .out = {HostTensor(dtype, {2, 7, 65})},
                       .in_place = true,
                       .item_inputs = gates == 1 ? std::vector<std::uint32_t>{0, 2}
                                                 : std::vector<std::uint32_t>{0, 1, 2}});
    // Rows in whole eights, with a sum of the same type and one in f32.
    for (std::int64_t gates : {1, 2})
      for (heddle_dtype sum : kFloats)
        cases.push_back(
            {.name = label(HEDDLE_OP_GATED_ADD, device::cat(gates, " gates, rows of 1104, ", type,
                                                            " in ", device::dtype_name(sum))),
             .op = HEDDLE_OP_GATED_ADD,
             .in = {make(sum, {2, 7, 1104}), slice(HEDDLE_F32, {gates, 1, 1104}),
                    gates == 1 ? make(dtype, {2, 7, 1104}) : slice(dtype, {2, 7, 1104})},
             .out = {HostTensor(sum, {2, 7, 1104})},
             .in_place = true});
    cases.push_back({.name = label(HEDDLE_OP_GATED_ADD, "3 gates, an odd number of rows, " + type),
                     .op = HEDDLE_OP_GATED_ADD,
                     .in = {make(HEDDLE_F32, {3, 5, 264}), make(HEDDLE_F32, {3, 1, 264}),
                            make(dtype, {3, 5, 264})},
                     .out = {HostTensor(HEDDLE_F32, {3, 5, 264})},
                     .in_place = true});
  }
}

}  // namespace

void add_elementwise_cases(Random& random, std::vector<OpCase>& cases) {
  add_broadcast_cases(random, cases);
  add_combine_cases(random, cases);
  add_activation_cases(random, cases);
  add_gated_add_cases(random, cases);
}

void add_copy_cases(Random& random, std::vector<OpCase>& cases) {
  std::uniform_int_distribution<int> integer(-100, 100);
  std::normal_distribution<double> normal(0, 30);
  constexpr heddle_dtype kUnsigned[] = {HEDDLE_U8, HEDDLE_U16, HEDDLE_U32, HEDDLE_U64,
                                        HEDDLE_BOOL8};
  const auto is_unsigned = [&](heddle_dtype dtype) {
    return std::find(std::begin(kUnsigned), std::end(kUnsigned), dtype) != std::end(kUnsigned);
  };
  for (heddle_dtype from = HEDDLE_F32; from <= HEDDLE_U64; ++from) {
    for (heddle_dtype to = HEDDLE_F32; to <= HEDDLE_U64; ++to) {
      HostTensor in = HostTensor::permuted(from, {3, 4, 7}, {2, 0, 1});
      for (std::int64_t i = 0; i < in.count(); ++i) {
        const double value = device::is_float(from) ? normal(random) : integer(random);
        in.set(i, from == HEDDLE_BOOL8 ? (value > 0 ? 1 : 0)
                  : is_unsigned(from)  ? std::abs(value)
                                       : value);
      }
      cases.push_back({.name = label(HEDDLE_OP_COPY, device::cat(device::dtype_name(from), " to ",
                                                                 device::dtype_name(to))),
                       .op = HEDDLE_OP_COPY,
                       .in = {in},
                       .out = {HostTensor(to, {3, 4, 7})}});
    }
    cases.push_back({.name = label(HEDDLE_OP_FILL, device::dtype_name(from)),
                     .op = HEDDLE_OP_FILL,
                     .in = {},
                     .out = {HostTensor::slice(from, {5, 13}, 2)},
                     .attrs = bytes_of(heddle_fill_attrs{1})});
  }
  for (heddle_dtype from : kFloats)
    for (heddle_dtype to : kFloats)
      cases.push_back(
          {.name = label(HEDDLE_OP_COPY, device::cat("rows of ", device::dtype_name(from), " to ",
                                                     device::dtype_name(to))),
           .op = HEDDLE_OP_COPY,
           .in = {filled(random, HostTensor::slice(from, {4, 5, 67}, 3))},
           .out = {HostTensor::slice(to, {4, 5, 67}, 1)}});
  cases.push_back({.name = label(HEDDLE_OP_COPY, "into a permuted slice"),
                   .op = HEDDLE_OP_COPY,
                   .in = {filled(random, HostTensor::slice(HEDDLE_F32, {8, 6, 5}, 2))},
                   .out = {HostTensor::permuted(HEDDLE_BF16, {8, 6, 5}, {1, 2, 0})}});
  cases.push_back({.name = label(HEDDLE_OP_COPY, "long rows"),
                   .op = HEDDLE_OP_COPY,
                   .in = {filled(random, HostTensor(HEDDLE_F16, {3, 10007}))},
                   .out = {HostTensor::slice(HEDDLE_F32, {3, 10007}, 1)}});
}

void add_table_cases(Random& random, std::vector<OpCase>& cases) {
  HostTensor ids(HEDDLE_F32, {37, 3});
  for (std::int64_t i = 0; i < ids.count(); ++i) ids.set(i, static_cast<double>(random() % 200));
  cases.push_back({.name = label(HEDDLE_OP_ROPE_TABLE, "three axes"),
                   .op = HEDDLE_OP_ROPE_TABLE,
                   .in = {ids},
                   .out = {HostTensor(HEDDLE_F32, {37, 64}), HostTensor(HEDDLE_F32, {37, 64})},
                   .attrs = bytes_of(heddle_rope_table_attrs{3, 0, {16, 56, 56, 0}, 10000})});
  cases.push_back({.name = label(HEDDLE_OP_GRID_IDS, "with offsets"),
                   .op = HEDDLE_OP_GRID_IDS,
                   .in = {},
                   .out = {HostTensor(HEDDLE_F32, {3 * 5 * 7, 3})},
                   .attrs = bytes_of(heddle_grid_ids_attrs{{3, 5, 7}, {0, -2, 1.5}})});
  HostTensor times(HEDDLE_F32, {3});
  for (std::int64_t i = 0; i < 3; ++i) times.set(i, static_cast<double>(random() % 1000));
  for (heddle_dtype out : kFloats)
    for (std::int32_t cos_first : {0, 1})
      cases.push_back(
          {.name = label(HEDDLE_OP_TIMESTEP_EMBEDDING,
                         device::cat(device::dtype_name(out), " ", cos_first)),
           .op = HEDDLE_OP_TIMESTEP_EMBEDDING,
           .in = {times},
           .out = {HostTensor(out, {3, 256})},
           .attrs = bytes_of(heddle_timestep_embedding_attrs{1, 10000, 0, cos_first, 0}),
           .item_inputs = {0}});
  for (heddle_dtype type : {HEDDLE_I32, HEDDLE_I64}) {
    for (heddle_dtype table : kFloats) {
      HostTensor rows(type, {2, 9});
      for (std::int64_t i = 0; i < rows.count(); ++i)
        rows.set(i, static_cast<double>(random() % 31));
      cases.push_back(
          {.name = label(HEDDLE_OP_EMBEDDING,
                         device::cat(device::dtype_name(type), " of ", device::dtype_name(table))),
           .op = HEDDLE_OP_EMBEDDING,
           .in = {filled(random, HostTensor(table, {31, 40})), rows},
           .out = {HostTensor(HEDDLE_F32, {2, 9, 40})},
           .weight = OpCase::Weight{0, HEDDLE_USE_TABLE},
           .item_inputs = {1}});
    }
  }
  for (heddle_dtype table = HEDDLE_Q8_0; table <= HEDDLE_I4_GROUPED; ++table) {
    HostTensor rows(HEDDLE_I32, {2, 9});
    for (std::int64_t i = 0; i < rows.count(); ++i) rows.set(i, static_cast<double>(random() % 31));
    cases.push_back({.name = label(HEDDLE_OP_EMBEDDING, device::dtype_name(table)),
                     .op = HEDDLE_OP_EMBEDDING,
                     .in = {filled(random, HostTensor(table, {31, 512})), rows},
                     .out = {HostTensor(HEDDLE_F32, {2, 9, 512})},
                     .weight = OpCase::Weight{0, HEDDLE_USE_TABLE},
                     .item_inputs = {1}});
  }
  for (std::int32_t both : {0, 1})
    cases.push_back(
        {.name = label(HEDDLE_OP_RELATIVE_BUCKET, both != 0 ? "both directions" : "backwards"),
         .op = HEDDLE_OP_RELATIVE_BUCKET,
         .in = {},
         .out = {HostTensor(HEDDLE_I32, {150, 170})},
         .attrs = bytes_of(heddle_relative_bucket_attrs{32, 128, both, 0})});
  add_row_cases(random, cases);
  add_batch_cases(random, cases);
  add_delta_cases(random, cases);
  add_rms_norm_cases(random, cases);
  add_frame_cases(random, cases);
}

}  // namespace heddle::conformance
