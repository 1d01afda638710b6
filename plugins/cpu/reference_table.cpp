// Tables of positions and times, and rows looked up in a table.
#include <algorithm>
#include <cstring>

#include "kernels.h"
#include "op_check.h"
#include "reference.h"

namespace heddle::cpu {

namespace {

struct RopeTable : Reference {
  static constexpr const char* op = HEDDLE_OP_ROPE_TABLE;
  static void check(const heddle_op_call& call) { check_rope_table(call); }
  static void run(const Call& call) {
    const auto attrs = call.attrs<heddle_rope_table_attrs>();
    const heddle_view &ids = call.in(0), &cosines = call.out(0), &sines = call.out(1);
    const std::int64_t pairs = cosines.info.shape[1];
    for_each_row(call, cosines.info, [&](std::int64_t row, Scratch& scratch) {
      auto* id = scratch.take<float>(static_cast<std::size_t>(attrs.axes));
      load_row(HEDDLE_F32, element(ids, row * ids.info.stride[0]), attrs.axes, ids.info.stride[1],
               id);
      auto* cosine = scratch.take<float>(static_cast<std::size_t>(pairs));
      auto* sine = scratch.take<float>(static_cast<std::size_t>(pairs));
      std::int64_t column = 0;
      for (int axis = 0; axis < attrs.axes; ++axis) {
        for (int i = 0; i < attrs.dim[axis] / 2; ++i, ++column) {
          const double angle = id[axis] * (1 / std::pow(attrs.theta, 2.0 * i / attrs.dim[axis]));
          cosine[column] = static_cast<float>(std::cos(angle));
          sine[column] = static_cast<float>(std::sin(angle));
        }
      }
      store_piece(cosines, {row, 0, pairs}, cosine);
      store_piece(sines, {row, 0, pairs}, sine);
    });
  }
};

struct GridIds : Reference {
  static constexpr const char* op = HEDDLE_OP_GRID_IDS;
  static void check(const heddle_op_call& call) { check_grid_ids(call); }
  static void run(const Call& call) {
    const auto attrs = call.attrs<heddle_grid_ids_attrs>();
    const heddle_view& out = call.out();
    for_each_row(call, out.info, [&](std::int64_t row, Scratch&) {
      const std::int64_t w = row % attrs.size[2], h = row / attrs.size[2] % attrs.size[1];
      const std::int64_t t = row / attrs.size[2] / attrs.size[1];
      const float id[3] = {static_cast<float>(static_cast<double>(t) + attrs.offset[0]),
                           static_cast<float>(static_cast<double>(h) + attrs.offset[1]),
                           static_cast<float>(static_cast<double>(w) + attrs.offset[2])};
      store_piece(out, {row, 0, 3}, id);
    });
  }
};

struct TimestepEmbedding : Reference {
  static constexpr const char* op = HEDDLE_OP_TIMESTEP_EMBEDDING;
  static void check(const heddle_op_call& call) { check_timestep_embedding(call); }
  static void run(const Call& call) {
    const auto attrs = call.attrs<heddle_timestep_embedding_attrs>();
    const heddle_view &times = call.in(0), &out = call.out();
    const std::int64_t half = out.info.shape[1] / 2;
    const auto period = static_cast<float>(-std::log(attrs.max_period));
    const auto divisor = static_cast<float>(static_cast<double>(half) - attrs.shift);
    for_each_row(call, out.info, [&](std::int64_t row, Scratch& scratch) {
      float t = 0;
      std::memcpy(&t, element(times, row * times.info.stride[0]), sizeof t);
      const float scaled = t * static_cast<float>(attrs.scale);
      auto* result = scratch.take<float>(static_cast<std::size_t>(2 * half));
      for (std::int64_t i = 0; i < half; ++i) {
        const float frequency = std::exp(period * static_cast<float>(i) / divisor);
        const float angle = scaled * frequency;
        const auto cosine = static_cast<float>(std::cos(double{angle}));
        const auto sine = static_cast<float>(std::sin(double{angle}));
        result[i] = attrs.cos_first != 0 ? cosine : sine;
        result[half + i] = attrs.cos_first != 0 ? sine : cosine;
      }
      store_piece(out, {row, 0, 2 * half}, result);
    });
  }
};

struct Embedding : Reference {
  static constexpr const char* op = HEDDLE_OP_EMBEDDING;
  static void check(const heddle_op_call& call) { check_embedding(call); }

  static std::int64_t id_at(const heddle_view& ids, std::int64_t number) {
    std::int64_t offset = 0;
    for (std::uint32_t axis = ids.info.rank; axis-- > 0;) {
      offset += number % ids.info.shape[axis] * ids.info.stride[axis];
      number /= ids.info.shape[axis];
    }
    if (ids.info.dtype == HEDDLE_I64) {
      std::int64_t id;
      std::memcpy(&id, element(ids, offset), sizeof id);
      return id;
    }
    std::int32_t id;
    std::memcpy(&id, element(ids, offset), sizeof id);
    return id;
  }

  static void run(const Call& call) {
    const heddle_view &table = call.in(0), &ids = call.in(1), &out = call.out();
    const std::int64_t rows = table.info.shape[0], d = table.info.shape[1];
    for_each_row(call, out.info, [&](std::int64_t row, Scratch& scratch) {
      const std::int64_t id = id_at(ids, row);
      if (id < 0 || id >= rows)
        device::fail(HEDDLE_INVALID_ARGUMENT, "id number ", row, " is ", id, ", outside the table ",
                     device::describe(table.info));
      store_piece(out, {row, 0, d}, load_piece(table, table.info, {id, 0, d}, scratch));
    });
  }
};

// Source: the relative attention of T5 (Raffel et al. 2019, section 2.1), with the f32 logarithm of
// its published code.
struct RelativeBucket : Reference {
  static constexpr const char* op = HEDDLE_OP_RELATIVE_BUCKET;
  static void check(const heddle_op_call& call) { check_relative_bucket(call); }

  static std::int32_t bucket(const heddle_relative_bucket_attrs& attrs, std::int64_t relative) {
    const bool both = attrs.bidirectional != 0;
    const std::int32_t buckets = both ? attrs.buckets / 2 : attrs.buckets;
    const std::int32_t first = both && relative > 0 ? buckets : 0;
    const std::int64_t distance = both ? std::abs(relative) : std::max<std::int64_t>(0, -relative);
    const std::int32_t exact = buckets / 2;
    if (distance < exact) return first + static_cast<std::int32_t>(distance);
    const auto range =
        static_cast<float>(std::log(static_cast<double>(attrs.max_distance) / exact));
    const float grown = std::log(static_cast<float>(distance) / static_cast<float>(exact)) / range;
    // Compared before the conversion: far positions may pass what an int32 holds.
    const float step = std::min(grown * static_cast<float>(buckets - exact),
                                static_cast<float>(buckets - 1 - exact));
    return first + exact + static_cast<std::int32_t>(step);
  }

  static void run(const Call& call) {
    const auto attrs = call.attrs<heddle_relative_bucket_attrs>();
    const heddle_view& out = call.out();
    for_each_row(call, out.info, [&](std::int64_t q, Scratch&) {
      for (std::int64_t k = 0; k < out.info.shape[1]; ++k) {
        const std::int32_t value = bucket(attrs, k - q);
        std::memcpy(element(out, q * out.info.stride[0] + k * out.info.stride[1]), &value,
                    sizeof value);
      }
    });
  }
};

}  // namespace

constexpr heddle_kernel kReferenceRopeTable = kernel_table<RopeTable>();
constexpr heddle_kernel kReferenceGridIds = kernel_table<GridIds>();
constexpr heddle_kernel kReferenceTimestepEmbedding = kernel_table<TimestepEmbedding>();
constexpr heddle_kernel kReferenceEmbedding = kernel_table<Embedding>();
constexpr heddle_kernel kReferenceRelativeBucket = kernel_table<RelativeBucket>();

}  // namespace heddle::cpu
