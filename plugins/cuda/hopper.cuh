// What PTX has for cards of capability 9.0 alone: barriers in shared memory, copies of whole blocks
// into it, and products of warp groups (four warps) of numbers of f8_e4m3 with sums in f32. From
// NVIDIA's PTX ISA 8.7, sections "mbarrier", "cp.async.bulk" and "wgmma". Only for code that is
// compiled for 9.0a.
#pragma once

#include <cstdint>

namespace heddle::cuda::hopper {

// Of shared memory, as instructions take it.
__device__ __forceinline__ unsigned address(const void* shared) {
  return static_cast<unsigned>(__cvta_generic_to_shared(shared));
}

// ---- barriers ----

// A phase ends when so many have arrived and all bytes that were announced are there; the phases
// are told apart by their parity, the first of which is 0. In shared memory.
using Barrier = std::uint64_t;

__device__ __forceinline__ void initialise(Barrier* barrier, int arrivals) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(address(barrier)), "r"(arrivals));
}
__device__ __forceinline__ void arrive(Barrier* barrier) {
  asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(address(barrier)) : "memory");
}
__device__ __forceinline__ void wait(Barrier* barrier, unsigned parity) {
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "AGAIN:\n"
      "mbarrier.try_wait.parity.shared.b64 done, [%0], %1;\n"
      "@done bra DONE;\n"
      "bra AGAIN;\n"
      "DONE:\n"
      "}\n" ::"r"(address(barrier)),
      "r"(parity)
      : "memory");
}
// Arrives, and has the copy's bytes arrive. Both addresses and the length are multiples of 16.
__device__ __forceinline__ void copy(void* shared, const void* from, int bytes, Barrier* barrier) {
  asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(address(barrier)),
               "r"(bytes)
               : "memory");
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(address(shared)),
      "l"(from), "r"(bytes), "r"(address(barrier))
      : "memory");
}

// What threads have written to shared memory is there for products that begin later.
__device__ __forceinline__ void publish() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// Of `threads` in all, by number (1 to 15): those that wait, and those that do not.
__device__ __forceinline__ void meet(int number, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(number), "r"(threads) : "memory");
}
__device__ __forceinline__ void pass(int number, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(number), "r"(threads) : "memory");
}

// ---- products ----

// An operand in shared memory: rows of kRowBytes, 64 or 128, of which eight and eight lie behind
// each other, and in which pieces of 16 bytes are exchanged as place_of() says; from byte `at` of a
// row on. The first row lies at a multiple of 1024.
template <int kRowBytes>
__device__ __forceinline__ std::uint64_t operand(unsigned at) {
  static_assert(kRowBytes == 64 || kRowBytes == 128);
  return std::uint64_t{(at & 0x3ffff) >> 4} | std::uint64_t{1} << 16 |
         std::uint64_t{kRowBytes * 8 / 16} << 32 | std::uint64_t{kRowBytes == 128 ? 1 : 2} << 62;
}

// Where piece number `piece` of a row lies in it.
template <int kRowBytes>
__device__ __forceinline__ int place_of(int row, int piece) {
  return kRowBytes == 128 ? piece ^ (row & 7) : piece ^ (row >> 1 & 3);
}

// Before the first product that reads registers written since the last.
__device__ __forceinline__ void begin_products() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ __forceinline__ void end_group() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
// Until at most so many groups are under way.
template <int kLeft>
__device__ __forceinline__ void wait_for_groups() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kLeft) : "memory");
}

// The compiler does not know that sums change while a product is under way: behind a wait, sums are
// what they are now, and operands were needed until now.
template <int kCount>
__device__ __forceinline__ void have_changed(float (&sums)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+f"(sums[i])::"memory");
}
template <int kCount>
__device__ __forceinline__ void were_needed(const unsigned (&operand)[kCount][4]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j) asm volatile("" ::"r"(operand[i][j]) : "memory");
}

#define HEDDLE_SUMS_8(d, i)                                                                   \
  "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), \
      "+f"(d[i + 6]), "+f"(d[i + 7])
#define HEDDLE_SUMS_32(d, i) \
  HEDDLE_SUMS_8(d, i), HEDDLE_SUMS_8(d, i + 8), HEDDLE_SUMS_8(d, i + 16), HEDDLE_SUMS_8(d, i + 24)
#define HEDDLE_NAMES_32                                                    \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define HEDDLE_NAMES_64                                                                \
  HEDDLE_NAMES_32                                                                      \
  ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
  "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"

// sums (64 x N) = a (64 x 32) b (N x 32)^T, with `add` added to what they were; a in registers or
// in shared memory, b in shared memory. Of a row r = 16 * warp + lane / 4 a thread has the sums of
// columns 8 n + 2 (lane % 4) + {0, 1} at 4 n + {0, 1}, and those of row r + 8 at 4 n + {2, 3}; of
// a, columns 4 (lane % 4) + {0 ... 3} of row r and of row r + 8, then those 16 further.
__device__ __forceinline__ void multiply(float (&sums)[64], const unsigned (&a)[4], std::uint64_t b,
                                         bool add) {
  asm volatile(
      "{\n.reg .pred add;\nsetp.ne.b32 add, %69, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3 {" HEDDLE_NAMES_64
      "}, {%64, %65, %66, %67}, %68, add, 1, 1;\n}\n"
      : HEDDLE_SUMS_32(sums, 0), HEDDLE_SUMS_32(sums, 32)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(static_cast<int>(add)));
}
__device__ __forceinline__ void multiply(float (&sums)[32], const unsigned (&a)[4], std::uint64_t b,
                                         bool add) {
  asm volatile(
      "{\n.reg .pred add;\nsetp.ne.b32 add, %37, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k32.f32.e4m3.e4m3 {" HEDDLE_NAMES_32
      "}, {%32, %33, %34, %35}, %36, add, 1, 1;\n}\n"
      : HEDDLE_SUMS_32(sums, 0)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(static_cast<int>(add)));
}
__device__ __forceinline__ void multiply(float (&sums)[64], std::uint64_t a, std::uint64_t b,
                                         bool add) {
  asm volatile(
      "{\n.reg .pred add;\nsetp.ne.b32 add, %66, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3 {" HEDDLE_NAMES_64
      "}, %64, %65, add, 1, 1;\n}\n"
      : HEDDLE_SUMS_32(sums, 0), HEDDLE_SUMS_32(sums, 32)
      : "l"(a), "l"(b), "r"(static_cast<int>(add)));
}

#undef HEDDLE_SUMS_8
#undef HEDDLE_SUMS_32
#undef HEDDLE_NAMES_32
#undef HEDDLE_NAMES_64

// ---- numbers ----

__device__ __forceinline__ float exp2_of(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// Four numbers of f8_e4m3, rounded to nearest even, what is too large as the largest.
__device__ __forceinline__ unsigned to_fp8(float a, float b, float c, float d) {
  unsigned short low, high;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(low) : "f"(b), "f"(a));
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(high) : "f"(d), "f"(c));
  return static_cast<unsigned>(high) << 16 | low;
}

// The same of 256 times each number, by cheaper instructions: the bits of f16 are those of f8_e4m3
// of 256 times as much, seven places higher, also where both have lost bits to their exponents. Of
// two that are as near the larger one. Numbers are from 0 to 1.8; NaN becomes any number.
__device__ __forceinline__ unsigned to_fp8_of_256(float a, float b, float c, float d) {
  unsigned low, high;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(low) : "f"(b), "f"(a));
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(high) : "f"(d), "f"(c));
  constexpr unsigned kHalf = 0x00800080u;
  return __byte_perm(low + low + kHalf, high + high + kHalf, 0x7531);
}

}  // namespace heddle::cuda::hopper
