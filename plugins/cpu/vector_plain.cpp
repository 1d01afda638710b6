// The inner loops for any processor that the compiler's default flags allow, and the choice among
// the tables.
#include <cstdlib>
#include <string_view>

#define HEDDLE_VECTOR_WIDTH 4
#include "vector_body.h"

namespace heddle::cpu {

namespace {

constexpr VectorKernels kTable = make_table("plain");

const VectorKernels* choose() {
  const char* setting = std::getenv("ONEDNN_MAX_CPU_ISA");
  const std::string_view cap = setting == nullptr ? "" : setting;
  const bool below_avx2 = cap == "SSE41" || cap == "AVX";
  const bool below_avx512 = below_avx2 || cap.substr(0, 4) == "AVX2";
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (avx512 && avx2 && !below_avx512 && avx512_kernels() != nullptr) return avx512_kernels();
  if (avx2 && !below_avx2 && avx2_kernels() != nullptr) return avx2_kernels();
#endif
  return plain_kernels();
}

}  // namespace

const VectorKernels* plain_kernels() { return &kTable; }

const VectorKernels& vector_kernels() {
  static const VectorKernels* const chosen = choose();
  return *chosen;
}

}  // namespace heddle::cpu
