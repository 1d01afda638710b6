// More of what PTX has for cards of capability 9.0 alone (hopper.cuh): products of warp groups of
// numbers of 16 bits with sums in f32, and copies of boxes of a tensor into shared memory. From
// NVIDIA's PTX ISA 8.7, sections "wgmma" and "cp.async.bulk.tensor". Only for code that is compiled
// for 9.0a.
#pragma once

#include <cuda.h>
#include <cuda_bf16.h>

#include <type_traits>

#include "hopper.cuh"

namespace heddle::cuda::hopper {

// ---- copies ----

// The bytes that copies will bring in the barrier's phase; counts as an arrival.
__device__ __forceinline__ void expect(Barrier* barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(address(barrier)),
               "r"(bytes)
               : "memory");
}

// The box whose first element is at these coordinates, the innermost axis first; what lies outside
// of the tensor comes as zeros, and counts. To a multiple of 1024.
__device__ __forceinline__ void copy_box(void* shared, const CUtensorMap& from, int x0, int x1,
                                         int x2, int x3, int x4, Barrier* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, "
      "%3, %4, %5, %6}], [%7];" ::"r"(address(shared)),
      "l"(&from), "r"(x0), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(address(barrier))
      : "memory");
}
__device__ __forceinline__ void copy_box(void* shared, const CUtensorMap& from, int x0, int x1,
                                         Barrier* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, "
      "%3}], [%4];" ::"r"(address(shared)),
      "l"(&from), "r"(x0), "r"(x1), "r"(address(barrier))
      : "memory");
}
// From shared memory; what lies outside of the tensor is not written. Of the calling thread's
// group.
__device__ __forceinline__ void write_box(const CUtensorMap& to, const void* shared, int x0, int x1,
                                          int x2, int x3, int x4) {
  asm volatile(
      "cp.async.bulk.tensor.5d.global.shared::cta.bulk_group [%0, {%1, %2, %3, %4, %5}], [%6];" ::
          "l"(&to),
      "r"(x0), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(address(shared))
      : "memory");
}
__device__ __forceinline__ void end_writes() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
// Until the shared memory of all groups has been read.
__device__ __forceinline__ void wait_for_reads() {
  asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}
// Before the first copy by it.
__device__ __forceinline__ void fetch(const CUtensorMap& map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

// Four matrices of 8 x 8 numbers of 16 bits, of which a thread has two neighbours each, as of sums:
// threads 8 i to 8 i + 7 say where the rows of the ith go.
__device__ __forceinline__ void store_matrices(unsigned row, unsigned a, unsigned b, unsigned c,
                                               unsigned d) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row),
               "r"(a), "r"(b), "r"(c), "r"(d)
               : "memory");
}

// ---- products ----

#define HEDDLE_SUMS_16(i)                                                                    \
  "+f"(sums[i]), "+f"(sums[i + 1]), "+f"(sums[i + 2]), "+f"(sums[i + 3]), "+f"(sums[i + 4]), \
      "+f"(sums[i + 5]), "+f"(sums[i + 6]), "+f"(sums[i + 7]), "+f"(sums[i + 8]),            \
      "+f"(sums[i + 9]), "+f"(sums[i + 10]), "+f"(sums[i + 11]), "+f"(sums[i + 12]),         \
      "+f"(sums[i + 13]), "+f"(sums[i + 14]), "+f"(sums[i + 15])
#define HEDDLE_SUMS_48 HEDDLE_SUMS_16(0), HEDDLE_SUMS_16(16), HEDDLE_SUMS_16(32)
#define HEDDLE_SUMS_64 HEDDLE_SUMS_48, HEDDLE_SUMS_16(48)
#define HEDDLE_SUMS_80 HEDDLE_SUMS_64, HEDDLE_SUMS_16(64)
#define HEDDLE_SUMS_96 HEDDLE_SUMS_80, HEDDLE_SUMS_16(80)
#define HEDDLE_SUMS_128 HEDDLE_SUMS_96, HEDDLE_SUMS_16(96), HEDDLE_SUMS_16(112)
#define HEDDLE_NAMES_48                                                                        \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, " \
  "%20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, " \
  "%38, %39, %40, %41, %42, %43, %44, %45, %46, %47"
#define HEDDLE_NAMES_64 \
  HEDDLE_NAMES_48       \
  ", %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define HEDDLE_NAMES_80 \
  HEDDLE_NAMES_64       \
  ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79"
#define HEDDLE_NAMES_96 \
  HEDDLE_NAMES_80       \
  ", %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define HEDDLE_NAMES_128                                                                          \
  HEDDLE_NAMES_96                                                                                 \
  ", %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111," \
  " %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, "   \
  "%127"
// SHAPE: of the sums; COUNT: of a thread's; then the names of both operands and of `add`.
#define HEDDLE_MULTIPLY(SHAPE, TYPE, COUNT, A, B, ADD)                              \
  asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, " ADD                          \
               ", 0;\nwgmma.mma_async.sync.aligned." SHAPE "k16.f32." TYPE "." TYPE \
               " {" HEDDLE_NAMES_##COUNT "}, " A ", " B ", add, 1, 1, 0, 0;\n}\n"   \
               : HEDDLE_SUMS_##COUNT                                                \
               : "l"(a), "l"(b), "r"(static_cast<int>(add)))
#define HEDDLE_MULTIPLY_BOTH(SHAPE, COUNT, A, B, ADD)   \
  if constexpr (std::is_same_v<Element, __nv_bfloat16>) \
    HEDDLE_MULTIPLY(SHAPE, "bf16", COUNT, A, B, ADD);   \
  else                                                  \
    HEDDLE_MULTIPLY(SHAPE, "f16", COUNT, A, B, ADD)

// sums (64 x N) = a (64 x 16) b (N x 16)^T, with `add` added to what they were; operands in shared
// memory. Who has which sums: as in hopper.cuh.
template <class Element, int kCount>
__device__ __forceinline__ void multiply16(float (&sums)[kCount], std::uint64_t a, std::uint64_t b,
                                           bool add) {
  static_assert(kCount == 48 || kCount == 64 || kCount == 80 || kCount == 96 || kCount == 128);
  if constexpr (kCount == 48) {
    HEDDLE_MULTIPLY_BOTH("m64n96", 48, "%48", "%49", "%50");
  } else if constexpr (kCount == 64) {
    HEDDLE_MULTIPLY_BOTH("m64n128", 64, "%64", "%65", "%66");
  } else if constexpr (kCount == 80) {
    HEDDLE_MULTIPLY_BOTH("m64n160", 80, "%80", "%81", "%82");
  } else if constexpr (kCount == 96) {
    HEDDLE_MULTIPLY_BOTH("m64n192", 96, "%96", "%97", "%98");
  } else {
    HEDDLE_MULTIPLY_BOTH("m64n256", 128, "%128", "%129", "%130");
  }
}

#undef HEDDLE_SUMS_16
#undef HEDDLE_SUMS_48
#undef HEDDLE_SUMS_64
#undef HEDDLE_SUMS_80
#undef HEDDLE_SUMS_96
#undef HEDDLE_SUMS_128
#undef HEDDLE_NAMES_48
#undef HEDDLE_NAMES_64
#undef HEDDLE_NAMES_80
#undef HEDDLE_NAMES_96
#undef HEDDLE_NAMES_128
#undef HEDDLE_MULTIPLY
#undef HEDDLE_MULTIPLY_BOTH

}  // namespace heddle::cuda::hopper
