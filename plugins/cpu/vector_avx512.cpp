// The inner loops for avx512. Compile flags: see the build file; without them this file has no
// table.
#include "vector_kernels.h"

#if defined(__AVX512F__)

#include "vector_body.h"

namespace heddle::cpu {

namespace {
constexpr VectorKernels kTable = make_table("avx512");
}  // namespace

const VectorKernels* avx512_kernels() { return &kTable; }

}  // namespace heddle::cpu

#else

namespace heddle::cpu {

const VectorKernels* avx512_kernels() { return nullptr; }

}  // namespace heddle::cpu

#endif
