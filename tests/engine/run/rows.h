// Nodes that make rows, and nodes that read them while they come.
#pragma once

#include <string>

#include "heddle/abi/parts.h"
#include "tests/engine/run/run_fixture.h"

namespace heddle::test {

inline constexpr std::uint32_t kPartsSink = HEDDLE_NODE_SINK | HEDDLE_NODE_IMPURE;
inline constexpr std::uint32_t kParts = HEDDLE_PORT_PARTS,
                               kHostParts = HEDDLE_PORT_PARTS | HEDDLE_PORT_HOST;
inline constexpr std::int64_t kRows = 5;

inline engine::Tensor make_rows(heddle_ctx& ctx) {
  heddle_tensor_info info{};
  info.size = sizeof info;
  info.dtype = HEDDLE_F32;
  info.rank = 2;
  info.shape[0] = kRows;
  info.shape[1] = 3;
  return ctx.make_host(engine::checked_info(info, "rows"));
}
inline void fill_row(const engine::Tensor& tensor, std::int64_t row, float number) {
  float* const to = reinterpret_cast<float*>(tensor->data()) + row * 3;
  std::fill_n(to, 3, number);
}
inline const engine::Tensor& tensor_of(heddle_ctx& ctx) {
  return std::get<engine::Tensor>(ctx.input(0)->content);
}
inline float row_of(const engine::Tensor& tensor, std::int64_t row) {
  return reinterpret_cast<const float*>(tensor->data())[row * 3];
}

// Makes row after row, each when the one before has been read; the last one, when all but it are.
inline Action rows_one_by_one(Meeting& read, float first = 1) {
  return [&read, first](heddle_ctx& ctx) {
    const engine::Tensor rows = make_rows(ctx);
    BOOST_TEST(ctx.begin_output(0, rows));
    for (std::int64_t row = 0; row < kRows; ++row) {
      read.wait_for(int(row));
      fill_row(rows, row, first + float(row));
      ctx.made_rows(0, row + 1);
    }
    ctx.set_output(0, engine::make_value(rows));
  };
}
// The sum of all rows, as they come.
inline Action sum_of_rows(Meeting& read) {
  return [&read](heddle_ctx& ctx) {
    const engine::Tensor rows = tensor_of(ctx);
    float sum = 0;
    for (std::int64_t row = 0; row < kRows; ++row) {
      ctx.await_rows(*rows, row + 1);
      sum += row_of(rows, row);
      read.arrive();
    }
    give_number(ctx, std::int64_t(sum));
  };
}
inline const Action kPassOn = [](heddle_ctx& ctx) {
  ctx.set_output(0, engine::Value::share(ctx.input(0)));
};
// Reads it as any other value.
inline const Action kWholeSum = [](heddle_ctx& ctx) {
  const engine::Tensor rows = tensor_of(ctx);
  float sum = 0;
  for (std::int64_t row = 0; row < kRows; ++row) sum += row_of(rows, row);
  give_number(ctx, std::int64_t(sum));
};

inline engine::NodeIndex add_maker(Flow& flow, Action action, const std::string& id = "rows",
                                   Place place = Place::first) {
  return flow.add(id, place, {}, std::move(action), HEDDLE_NODE_IMPURE, nullptr, kParts);
}
inline engine::NodeIndex add_passed(Flow& flow, engine::NodeIndex from, std::uint32_t flags,
                                    const std::string& id = "passed") {
  return flow.add(id, Place::host, {{{from, 0}, flags}}, kPassOn, HEDDLE_NODE_IMPURE, nullptr,
                  kParts);
}

inline std::int64_t fetched(const engine::RunResult& result, engine::NodeIndex n) {
  return engine::get_int(*result.fetched.at({n, 0}));
}

}  // namespace heddle::test
