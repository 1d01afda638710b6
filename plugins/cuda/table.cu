// Tables: rotary angles, grids, time steps, lookups. What the CPU computes in double, or rounds at
// a certain place, is done just so: tables decide pictures.
#include <cmath>

#include "call.h"
#include "kernels.h"
#include "stored.cuh"

namespace heddle::cuda {

namespace {

constexpr int kThreads = 256;

__device__ std::int64_t thread_index() { return blockIdx.x * std::int64_t{kThreads} + threadIdx.x; }

__global__ void rope_table(View ids, View cosines, View sines, std::int64_t rows,
                           std::int64_t pairs, heddle_rope_table_attrs attrs) {
  const std::int64_t index = thread_index();
  if (index >= rows * pairs) return;
  const std::int64_t row = index / pairs, column = index % pairs;
  int axis = 0;
  std::int64_t i = column;
  for (; axis + 1 < attrs.axes && i >= attrs.dim[axis] / 2; ++axis) i -= attrs.dim[axis] / 2;
  const double id = static_cast<const float*>(ids.data)[row * ids.stride[0] + axis * ids.stride[1]];
  const double angle = id * (1 / pow(attrs.theta, 2.0 * static_cast<double>(i) / attrs.dim[axis]));
  double sine, cosine;
  sincos(angle, &sine, &cosine);
  static_cast<float*>(cosines.data)[row * cosines.stride[0] + column * cosines.stride[1]] =
      static_cast<float>(cosine);
  static_cast<float*>(sines.data)[row * sines.stride[0] + column * sines.stride[1]] =
      static_cast<float>(sine);
}

__global__ void grid_ids(View out, std::int64_t rows, heddle_grid_ids_attrs attrs) {
  const std::int64_t row = thread_index();
  if (row >= rows) return;
  const std::int64_t place[3] = {row / attrs.size[2] / attrs.size[1],
                                 row / attrs.size[2] % attrs.size[1], row % attrs.size[2]};
  for (int axis = 0; axis < 3; ++axis)
    static_cast<float*>(out.data)[row * out.stride[0] + axis * out.stride[1]] =
        static_cast<float>(static_cast<double>(place[axis]) + attrs.offset[axis]);
}

struct Frequencies {
  float period, divisor, scale;
  std::int32_t cos_first;
};

__global__ void timestep_embedding(View times, View out, std::int64_t rows, std::int64_t half,
                                   Frequencies f) {
  const std::int64_t index = thread_index();
  if (index >= rows * half) return;
  const std::int64_t row = index / half, i = index % half;
  const float scaled =
      __fmul_rn(static_cast<const float*>(times.data)[row * times.stride[0]], f.scale);
  const float exponent = __fdiv_rn(__fmul_rn(f.period, static_cast<float>(i)), f.divisor);
  // Rounded once from double: the device's own f32 exponential is off by a step, and the angle
  // multiplies that by the time.
  const float frequency = static_cast<float>(exp(static_cast<double>(exponent)));
  double sine, cosine;
  sincos(static_cast<double>(__fmul_rn(scaled, frequency)), &sine, &cosine);
  const float first = static_cast<float>(f.cos_first != 0 ? cosine : sine),
              second = static_cast<float>(f.cos_first != 0 ? sine : cosine);
  store(out.data, out.dtype, row * out.stride[0] + i, first);
  store(out.data, out.dtype, row * out.stride[0] + half + i, second);
}

struct Lookup {
  View table, ids, out;  // ids: over the output's axes without the last
  Space space;
  std::int64_t rows;
  Report* report;
  unsigned long long number;
};

// A block for each id.
__global__ void __launch_bounds__(kThreads) embedding(const __grid_constant__ Lookup lookup) {
  const int axes = lookup.space.rank - 1;
  const std::int64_t at = offset_of(lookup.ids, lookup.space, blockIdx.x, axes);
  const std::int64_t id = lookup.ids.dtype == HEDDLE_I64
                              ? static_cast<const long long*>(lookup.ids.data)[at]
                              : static_cast<const int*>(lookup.ids.data)[at];
  if (id < 0 || id >= lookup.rows) {
    if (threadIdx.x == 0 && atomicCAS_system(&lookup.report->number, 0ull, lookup.number) == 0) {
      lookup.report->where = blockIdx.x;
      lookup.report->value = id;
    }
    return;
  }
  const std::int64_t to = offset_of(lookup.out, lookup.space, blockIdx.x, axes),
                     from = id * lookup.table.stride[0];
  for (std::int64_t i = threadIdx.x; i < lookup.space.shape[axes]; i += kThreads)
    store(lookup.out.data, lookup.out.dtype, to + i,
          load_stored(lookup.table.data, lookup.table.dtype, from + i));
}

struct Buckets {
  std::int32_t buckets, exact, both;
  float range;
};

// Source: the relative attention of T5 (Raffel et al. 2019, section 2.1), with the f32 logarithm of
// its published code.
__global__ void relative_bucket(View out, std::int64_t queries, std::int64_t keys, Buckets b) {
  const std::int64_t index = thread_index();
  if (index >= queries * keys) return;
  const std::int64_t q = index / keys, k = index % keys, relative = k - q;
  const std::int32_t first = b.both != 0 && relative > 0 ? b.buckets : 0;
  const std::int64_t distance = b.both != 0 ? llabs(relative) : relative < 0 ? -relative : 0;
  std::int32_t bucket =
      first + static_cast<std::int32_t>(min(distance, static_cast<std::int64_t>(b.exact)));
  if (distance >= b.exact) {
    const float quotient = __fdiv_rn(static_cast<float>(distance), static_cast<float>(b.exact));
    const float grown = __fdiv_rn(static_cast<float>(log(static_cast<double>(quotient))), b.range);
    const float step = fminf(__fmul_rn(grown, static_cast<float>(b.buckets - b.exact)),
                             static_cast<float>(b.buckets - 1 - b.exact));
    bucket = first + b.exact + static_cast<std::int32_t>(step);
  }
  static_cast<std::int32_t*>(out.data)[q * out.stride[0] + k * out.stride[1]] = bucket;
}

View own(const heddle_view& view) { return view_of(&view, view.info); }

struct RopeTable : Plain {
  static constexpr const char* op = HEDDLE_OP_ROPE_TABLE;
  static void check(const heddle_op_call& call) { cpu::check_rope_table(call); }
  static void run(Stream& stream, const heddle_op_call& call, void*) {
    const heddle_tensor_info& whole = out(call).info;
    const std::int64_t rows = whole.shape[0], pairs = whole.shape[1];
    if (rows * pairs == 0) return;
    rope_table<<<blocks_for(rows * pairs, kThreads), kThreads, 0, stream.raw()>>>(
        own(in(call, 0)), own(out(call, 0)), own(out(call, 1)), rows, pairs,
        attrs<heddle_rope_table_attrs>(call));
  }
};

struct GridIds : Plain {
  static constexpr const char* op = HEDDLE_OP_GRID_IDS;
  static void check(const heddle_op_call& call) { cpu::check_grid_ids(call); }
  static void run(Stream& stream, const heddle_op_call& call, void*) {
    const std::int64_t rows = out(call).info.shape[0];
    if (rows == 0) return;
    grid_ids<<<blocks_for(rows, kThreads), kThreads, 0, stream.raw()>>>(
        own(out(call)), rows, attrs<heddle_grid_ids_attrs>(call));
  }
};

struct TimestepEmbedding : Plain {
  static constexpr const char* op = HEDDLE_OP_TIMESTEP_EMBEDDING;
  static void check(const heddle_op_call& call) { cpu::check_timestep_embedding(call); }
  static void run(Stream& stream, const heddle_op_call& call, void*) {
    const auto& a = attrs<heddle_timestep_embedding_attrs>(call);
    const std::int64_t rows = out(call).info.shape[0], half = out(call).info.shape[1] / 2;
    if (rows * half == 0) return;
    const Frequencies f{static_cast<float>(-std::log(a.max_period)),
                        static_cast<float>(static_cast<double>(half) - a.shift),
                        static_cast<float>(a.scale), a.cos_first};
    timestep_embedding<<<blocks_for(rows * half, kThreads), kThreads, 0, stream.raw()>>>(
        own(in(call, 0)), own(out(call)), rows, half, f);
  }
};

struct Embedding : Plain {
  static constexpr const char* op = HEDDLE_OP_EMBEDDING;
  static void check(const heddle_op_call& call) { cpu::check_embedding(call); }
  static void run(Stream& stream, const heddle_op_call& call, void*) {
    const heddle_tensor_info &whole = out(call).info, &table = in(call, 0).info;
    Lookup lookup{own(in(call, 0)),
                  own(in(call, 1)),
                  view_of(call.out[0], whole),
                  space_of(whole),
                  table.shape[0],
                  nullptr,
                  0};
    if (lookup.space.count == 0) return;
    lookup.table.stride[0] = table.stride[0];
    Failures& failures = stream.failures();
    lookup.report = failures.report();
    lookup.number =
        failures.next(device::cat("embedding/1 of the table ", device::describe(table)));
    const std::int64_t rows = lookup.space.count / whole.shape[whole.rank - 1];
    embedding<<<static_cast<unsigned>(rows), kThreads, 0, stream.raw()>>>(lookup);
  }
};

struct RelativeBucket : Plain {
  static constexpr const char* op = HEDDLE_OP_RELATIVE_BUCKET;
  static void check(const heddle_op_call& call) { cpu::check_relative_bucket(call); }
  static void run(Stream& stream, const heddle_op_call& call, void*) {
    const auto& a = attrs<heddle_relative_bucket_attrs>(call);
    const std::int64_t queries = out(call).info.shape[0], keys = out(call).info.shape[1];
    if (queries * keys == 0) return;
    const std::int32_t buckets = a.bidirectional != 0 ? a.buckets / 2 : a.buckets,
                       exact = buckets / 2;
    const Buckets b{buckets, exact, a.bidirectional,
                    static_cast<float>(std::log(static_cast<double>(a.max_distance) / exact))};
    relative_bucket<<<blocks_for(queries * keys, kThreads), kThreads, 0, stream.raw()>>>(
        own(out(call)), queries, keys, b);
  }
};

}  // namespace

constexpr heddle_kernel kRopeTable = kernel_table<RopeTable>();
constexpr heddle_kernel kGridIds = kernel_table<GridIds>();
constexpr heddle_kernel kTimestepEmbedding = kernel_table<TimestepEmbedding>();
constexpr heddle_kernel kEmbedding = kernel_table<Embedding>();
constexpr heddle_kernel kRelativeBucket = kernel_table<RelativeBucket>();

}  // namespace heddle::cuda
