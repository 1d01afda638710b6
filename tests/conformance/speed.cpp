// The sizes are those of FLUX.1 at 1024 x 1024 (4608 tokens of 3072, 24 heads) and of its picture
// decoder, in bf16.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <regex>
#include <utility>

#include "heddle/abi/frame_ops.h"
#include "heddle/abi/norm_ops.h"
#include "heddle/device.hpp"
#include "modes.h"
#include "op_cases.h"
#include "settings.h"

namespace heddle::conformance {

namespace {

// Random bits that make bf16 numbers in (-2, 2) of about unit deviation: quick, where the cases'
// normal numbers would take minutes.
HostTensor random_bf16(std::uint64_t& state, Shape shape) {
  HostTensor tensor(HEDDLE_BF16, std::move(shape));
  auto* element = reinterpret_cast<std::uint16_t*>(tensor.memory().data() + tensor.origin());
  for (std::int64_t i = 0, count = tensor.count(); i < count; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const auto bits = static_cast<std::uint32_t>(state >> 40);
    element[i] = static_cast<std::uint16_t>((bits & 0x8000u) | (((bits >> 16) % 3 + 125) << 7) |
                                            (bits & 0x7fu));
  }
  return tensor;
}

struct Speed {
  OpCase op_case;
  double flops, bytes;  // 0: not what it is measured by
};

class Speeds {
 public:
  explicit Speeds(std::uint64_t seed) : state_(seed) {}
  std::vector<Speed> all;

  void attention(std::int64_t batch, std::int64_t tokens, std::int64_t heads, std::int64_t d) {
    const Shape shape{batch, tokens, heads, d};
    all.push_back(
        {{.name = device::cat("attention ", heads, " heads d", d, " ", tokens, " tokens"),
          .op = HEDDLE_OP_ATTENTION,
          .in = {random(shape), random(shape), random(shape), std::nullopt},
          .out = {HostTensor(HEDDLE_BF16, shape)},
          .attrs = bytes_of(heddle_attention_attrs{1 / std::sqrt(static_cast<double>(d)), 0, 0})},
         4.0 * static_cast<double>(batch * heads * d) * static_cast<double>(tokens) *
             static_cast<double>(tokens),
         0});
  }

  void linear(std::int64_t m, std::int64_t n, std::int64_t k, heddle_activation kind, bool added) {
    OpCase one{
        .name = device::cat("linear ", m, "x", n, "x", k, kind == HEDDLE_ACT_NONE ? "" : " gelu",
                            added ? " residual" : ""),
        .op = HEDDLE_OP_LINEAR,
        .in = {random({1, m, k}), random({n, k}), random({n}), std::nullopt},
        .out = {HostTensor(HEDDLE_BF16, {1, m, n})},
        .attrs = bytes_of(heddle_activation_attrs{kind}),
        .weight = OpCase::Weight{1, HEDDLE_USE_LINEAR}};
    if (added) one.in[3] = random({1, m, n});
    all.push_back({std::move(one), 2.0 * static_cast<double>(m * n) * static_cast<double>(k), 0});
  }

  // By a matrix of an int8 file: with --option linear_dtype=int8 as whole numbers, else widened.
  void linear_int8(std::int64_t m, std::int64_t n, std::int64_t k, heddle_dtype type) {
    HostTensor weight(type, {n, k});
    std::byte* const block = weight.memory().data() + weight.origin();
    constexpr float kScale = 1e-4f;
    for (std::int64_t i = 0; i < device::bytes_of(type, n * k); ++i) {
      state_ = state_ * 6364136223846793005u + 1442695040888963407u;
      block[i] = std::byte(state_ >> 56);
    }
    for (std::int64_t at = 0; at < device::bytes_of(type, n * k); at += device::block_bytes(type))
      std::memcpy(block + at, &kScale, sizeof kScale);
    all.push_back(
        {{.name = device::cat("linear ", device::dtype_name(type), " ", m, "x", n, "x", k),
          .op = HEDDLE_OP_LINEAR,
          .in = {random({1, m, k}), std::move(weight), random({n}), std::nullopt},
          .out = {HostTensor(HEDDLE_BF16, {1, m, n})},
          .attrs = bytes_of(heddle_activation_attrs{HEDDLE_ACT_NONE}),
          .weight = OpCase::Weight{1, HEDDLE_USE_LINEAR}},
         2.0 * static_cast<double>(m * n) * static_cast<double>(k),
         0});
  }

  void conv(std::int64_t side, std::int64_t from, std::int64_t to) {
    all.push_back({{.name = device::cat("conv 3x3 ", side, "x", side, " ", from, " to ", to),
                    .op = HEDDLE_OP_CONV2D,
                    .in = {random({1, side, side, from}), random({to, from, 3, 3}), random({to}),
                           std::nullopt},
                    .out = {HostTensor(HEDDLE_BF16, {1, side, side, to})},
                    .attrs = bytes_of(heddle_conv2d_attrs{{1, 1}, {1, 1, 1, 1}}),
                    .weight = OpCase::Weight{1, HEDDLE_USE_CONV2D}},
                   2.0 * static_cast<double>(side * side) * static_cast<double>(from * to * 9),
                   0});
  }

  // Four frames behind the two that a causal filter reads before them, of so many times 104 x 60.
  void conv_frames(std::int64_t scale, std::int64_t from, std::int64_t to) {
    const std::int64_t height = 60 * scale, width = 104 * scale;
    all.push_back(
        {{.name = device::cat("conv3d 3x3x3 4x", height, "x", width, " ", from, " to ", to),
          .op = HEDDLE_OP_CONV3D,
          .in = {random({1, 6, height, width, from}), random({to, from, 3, 3, 3}), random({to}),
                 std::nullopt},
          .out = {HostTensor(HEDDLE_BF16, {1, 4, height, width, to})},
          .attrs = bytes_of(heddle_conv3d_attrs{{1, 1, 1}, {0, 1, 1, 0, 1, 1}}),
          .weight = OpCase::Weight{1, HEDDLE_USE_CONV2D}},
         2.0 * static_cast<double>(4 * height * width) * static_cast<double>(from * to * 27),
         0});
  }

  // As many passes over the tokens as `passes`.
  void row_op(const char* op, Operands in, Shape shape, std::vector<std::byte> attrs, double passes,
              heddle_dtype out = HEDDLE_BF16) {
    constexpr double pass = 2.0 * kTokens * kWidth;
    all.push_back({{.name = device::cat(op, " of ", device::dtype_name(in[0]->info().dtype)),
                    .op = op,
                    .in = std::move(in),
                    .out = {HostTensor(out, std::move(shape))},
                    .attrs = std::move(attrs)},
                   0,
                   passes * pass});
  }

  void group_norm(std::int64_t side, std::int64_t channels) {
    const Shape picture{1, side, side, channels};
    all.push_back({{.name = device::cat("group_norm/1 silu ", side, "x", side, " ", channels),
                    .op = HEDDLE_OP_GROUP_NORM,
                    .in = {random(picture), random({channels}), random({channels})},
                    .out = {HostTensor(HEDDLE_BF16, picture)},
                    .attrs = bytes_of(heddle_group_norm_attrs{1e-6, 32, HEDDLE_ACT_SILU})},
                   0,
                   3 * 2.0 * static_cast<double>(side * side * channels)});
  }

  void upsample(std::int64_t side, std::int64_t channels) {
    all.push_back({{.name = device::cat("upsample_nearest/1 ", side, "x", side, " ", channels),
                    .op = HEDDLE_OP_UPSAMPLE_NEAREST,
                    .in = {random({1, side, side, channels})},
                    .out = {HostTensor(HEDDLE_BF16, {1, 2 * side, 2 * side, channels})}},
                   0,
                   5 * 2.0 * static_cast<double>(side * side * channels)});
  }

  HostTensor random(Shape shape) { return random_bf16(state_, std::move(shape)); }

  static constexpr std::int64_t kTokens = 4608, kWidth = 3072;

 private:
  std::uint64_t state_;
};

void add_row_ops(Speeds& speeds) {
  const Shape rows{1, Speeds::kTokens, Speeds::kWidth}, vector{1, 1, Speeds::kWidth};
  const auto random = [&](const Shape& shape) { return speeds.random(shape); };
  speeds.row_op(HEDDLE_OP_COPY, {random(rows)}, rows, {}, 2);
  speeds.row_op(HEDDLE_OP_MODULATED_NORM, {random(rows), random(vector), random(vector)}, rows,
                bytes_of(heddle_norm_attrs{1e-6}), 2);
  speeds.row_op(HEDDLE_OP_GATED_ADD, {random(rows), random(vector), random(rows)}, rows, {}, 3);
  // As the models add up: in f32, of which a pass counts twice.
  HostTensor sum(HEDDLE_F32, rows);
  for (std::int64_t i = 0; i < sum.count(); ++i) sum.set(i, static_cast<double>(i % 977) / 977);
  speeds.row_op(HEDDLE_OP_MODULATED_NORM, {sum, random(vector), random(vector)}, rows,
                bytes_of(heddle_norm_attrs{1e-6}), 3);
  speeds.row_op(HEDDLE_OP_MODULATED_RMS_NORM, {sum, random(vector), random(vector)}, rows,
                bytes_of(heddle_norm_attrs{1e-6}), 3);
  speeds.row_op(HEDDLE_OP_GATED_ADD, {sum, random(vector), random(rows)}, rows, {}, 5, HEDDLE_F32);
  HostTensor angles(HEDDLE_F32, {Speeds::kTokens, 64});
  for (std::int64_t i = 0; i < angles.count(); ++i) angles.set(i, 0.5);
  const Shape heads{1, Speeds::kTokens, 24, 128};
  speeds.row_op(HEDDLE_OP_NORM_ROPE, {random(heads), random({128}), angles, angles}, heads,
                bytes_of(heddle_norm_attrs{1e-6}), 2);
  speeds.row_op(HEDDLE_OP_NORM_ROPE_HALF, {random(heads), random({128}), angles, angles}, heads,
                bytes_of(heddle_norm_rope_half_attrs{1e-6, 128, 64}), 2);
  // Of a row of heads, each of which turns by angles of its own: in f32, half as many as numbers.
  HostTensor own_angles(HEDDLE_F32, {Speeds::kTokens, Speeds::kWidth / 2});
  for (std::int64_t i = 0; i < own_angles.count(); ++i) own_angles.set(i, 0.5);
  speeds.row_op(HEDDLE_OP_NORM_ROPE_HALF,
                {random({1, Speeds::kTokens, 1, Speeds::kWidth}), random({Speeds::kWidth}),
                 own_angles, own_angles},
                {1, Speeds::kTokens, 1, Speeds::kWidth},
                bytes_of(heddle_norm_rope_half_attrs{1e-6, 128, 64}), 4);
  speeds.row_op(HEDDLE_OP_ACTIVATION, {random(rows)}, rows,
                bytes_of(heddle_activation_attrs{HEDDLE_ACT_SILU}), 2);
}

std::vector<Speed> make_speeds() {
  Speeds speeds(settings().seed);
  speeds.attention(1, 4608, 24, 128);
  speeds.attention(1, 4096, 10, 64);
  speeds.attention(2, 1024, 20, 64);
  speeds.attention(1, 16384, 1, 512);
  speeds.linear(4608, 21504, 3072, HEDDLE_ACT_NONE, false);
  speeds.linear(4608, 3072, 15360, HEDDLE_ACT_NONE, false);
  speeds.linear(4096, 12288, 3072, HEDDLE_ACT_GELU_TANH, false);
  speeds.linear(4096, 3072, 12288, HEDDLE_ACT_NONE, false);
  speeds.linear(4096, 9216, 3072, HEDDLE_ACT_NONE, false);
  speeds.linear(512, 9216, 3072, HEDDLE_ACT_NONE, false);
  for (const heddle_dtype type : {HEDDLE_I8_SCALED, HEDDLE_I8_ROTATED}) {
    speeds.linear_int8(4608, 21504, 3072, type);
    speeds.linear_int8(4608, 3072, 15360, type);
    speeds.linear_int8(512, 9216, 3072, type);
  }
  speeds.conv(128, 16, 512);
  speeds.conv(128, 512, 512);
  speeds.conv(256, 512, 512);
  speeds.conv(512, 512, 256);
  speeds.conv(512, 256, 256);
  speeds.conv(1024, 256, 128);
  speeds.conv(1024, 128, 128);
  speeds.conv(1024, 128, 3);
  speeds.all.back().op_case.out = {HostTensor(HEDDLE_F32, {1, 1024, 1024, 3})};
  speeds.all.back().op_case.in[2] = HostTensor(HEDDLE_F32, {3});
  // Of SDXL's UNet.
  speeds.conv(128, 320, 320);
  speeds.conv(128, 960, 320);
  speeds.conv(64, 640, 640);
  speeds.conv(64, 1920, 640);
  speeds.conv(32, 1280, 1280);
  speeds.conv_frames(1, 384, 384);
  speeds.conv_frames(2, 384, 384);
  speeds.conv_frames(4, 192, 192);
  speeds.conv_frames(4, 96, 96);
  speeds.all.back().op_case.in[3] = speeds.random({1, 4, 240, 416, 96});
  speeds.conv_frames(4, 96, 3);
  speeds.all.back().op_case.out = {HostTensor(HEDDLE_F32, {1, 4, 240, 416, 3})};
  speeds.all.back().op_case.in[2] = HostTensor(HEDDLE_F32, {3});
  add_row_ops(speeds);
  speeds.group_norm(1024, 128);
  speeds.group_norm(512, 256);
  speeds.group_norm(256, 512);
  speeds.group_norm(128, 512);
  speeds.upsample(512, 256);
  return std::move(speeds.all);
}

}  // namespace

int speed() {
  constexpr double kSecondsPerCase = 0.2;
  const Plugin plugin(settings().plugin);
  const TestDevice device(plugin, settings().options);
  std::printf("%-42s %-12s %12s %9s %9s\n", "case", "kernel", "microseconds", "TFLOP/s", "GB/s");
  const std::regex only(settings().only);
  for (Speed& one : make_speeds()) {
    if (!std::regex_search(one.op_case.name, only)) continue;
    const auto kernels = device.fitting(one.op_case);
    if (kernels.empty()) {
      std::printf("%-42s no kernel\n", one.op_case.name.c_str());
      continue;
    }
    const double seconds =
        device.measure(one.op_case, kernels.front(), kSecondsPerCase, wall_seconds);
    std::printf("%-42s %-12s %12.2f %9.1f %9.0f\n", one.op_case.name.c_str(), kernels.front()->name,
                1e6 * seconds, one.flops / seconds * 1e-12, one.bytes / seconds * 1e-9);
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace heddle::conformance
