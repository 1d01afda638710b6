// The inner loops for avx2. Compile flags: see the build file; without them this file has no table.
#include "vector_kernels.h"

#if defined(__AVX2__)

#include "vector_body.h"

namespace heddle::cpu {

namespace {
constexpr VectorKernels kTable = make_table("avx2");
}  // namespace

const VectorKernels* avx2_kernels() { return &kTable; }

}  // namespace heddle::cpu

#else

namespace heddle::cpu {

const VectorKernels* avx2_kernels() { return nullptr; }

}  // namespace heddle::cpu

#endif
