// Rows chosen by numbers, and rows put together.
#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <vector>

#include "kernels.h"
#include "op_check_rows.h"
#include "reference.h"

namespace heddle::cpu {

namespace {

template <class T>
T number_in(const heddle_view& view, std::int64_t item, std::int64_t index) {
  T number;
  std::memcpy(&number, element(view, item * view.info.stride[0] + index * view.info.stride[1]),
              sizeof number);
  return number;
}
template <class T>
void put_in(const heddle_view& view, std::int64_t item, std::int64_t index, T number) {
  std::memcpy(element(view, item * view.info.stride[0] + index * view.info.stride[1]), &number,
              sizeof number);
}

struct MatchRows : Reference {
  static constexpr const char* op = HEDDLE_OP_MATCH_ROWS;
  static void check(const heddle_op_call& call) { check_match_rows(call); }

  static void match(const Call& call, std::int64_t item, Scratch& scratch) {
    const heddle_view &scores = call.in(0), &places = call.out(0), &kept = call.out(1),
                      &moved = call.out(2), &to = call.out(3), &best = call.out(4);
    const std::int64_t rows = scores.info.shape[1], columns = scores.info.shape[2],
                       count = moved.info.shape[1];
    const auto size = static_cast<std::size_t>(rows);
    auto *highest = scratch.take<float>(size),
         *line = scratch.take<float>(static_cast<std::size_t>(columns));
    auto *column = scratch.take<std::int32_t>(size), *order = scratch.take<std::int32_t>(size);
    for (std::int64_t row = 0; row < rows; ++row) {
      load_row(scores.info.dtype,
               element(scores, item * scores.info.stride[0] + row * scores.info.stride[1]), columns,
               1, line);
      highest[row] = -std::numeric_limits<float>::infinity();
      column[row] = 0;
      for (std::int64_t i = 0; i < columns; ++i)
        if (line[i] > highest[row]) {
          highest[row] = line[i];
          column[row] = static_cast<std::int32_t>(i);
        }
      put_in(best, item, row, highest[row]);
    }
    std::iota(order, order + rows, 0);
    std::sort(order, order + rows, [&](std::int32_t a, std::int32_t b) {
      return highest[a] > highest[b] || (highest[a] == highest[b] && a < b);
    });
    for (std::int64_t i = 0; i < rows; ++i) {
      const std::int32_t row = order[i];
      if (i < count) {
        put_in(moved, item, i, row);
        put_in(to, item, i, column[row]);
        put_in(places, item, row, static_cast<std::int32_t>(rows - count + column[row]));
      } else {
        put_in(kept, item, i - count, row);
        put_in(places, item, row, static_cast<std::int32_t>(i - count));
      }
    }
  }
  static void run(const Call& call) {
    for_each_row(call, call.out(0).info,
                 [&](std::int64_t item, Scratch& scratch) { match(call, item, scratch); });
  }
};

struct MergeRows : Reference {
  static constexpr const char* op = HEDDLE_OP_MERGE_ROWS;
  static void check(const heddle_op_call& call) { check_merge_rows(call); }
  static void run(const Call& call) {
    const heddle_view &base = call.in(0), &rows = call.in(1), &moved = call.in(2), &to = call.in(3),
                      &out = call.out();
    const std::int64_t width = base.info.shape[2], count = moved.info.shape[1];
    for_each_row(call, out.info, [&](std::int64_t number, Scratch& scratch) {
      const std::int64_t item = number / base.info.shape[1], row = number % base.info.shape[1];
      const float* first = load_whole_row(base, base.info, number, scratch);
      auto* sums = scratch.take<float>(static_cast<std::size_t>(width));
      std::copy_n(first, width, sums);
      float parts = 1;
      auto* line = scratch.take<float>(static_cast<std::size_t>(width));
      for (std::int64_t i = 0; i < count; ++i) {
        if (number_in<std::int32_t>(to, item, i) != row) continue;
        const std::int32_t from = number_in<std::int32_t>(moved, item, i);
        if (from < 0 || from >= rows.info.shape[1])
          device::fail(HEDDLE_INVALID_ARGUMENT, "row ", i, " is moved from ", from,
                       ", outside of rows ", device::describe(rows.info));
        load_row(rows.info.dtype,
                 element(rows, item * rows.info.stride[0] + from * rows.info.stride[1]), width, 1,
                 line);
        for (std::int64_t c = 0; c < width; ++c) sums[c] += line[c];
        ++parts;
      }
      for (std::int64_t c = 0; c < width; ++c) sums[c] /= parts;
      store_piece(out, {number, 0, width}, sums);
    });
  }
};

}  // namespace

constexpr heddle_kernel kReferenceMatchRows = kernel_table<MatchRows>();
constexpr heddle_kernel kReferenceMergeRows = kernel_table<MergeRows>();

}  // namespace heddle::cpu
