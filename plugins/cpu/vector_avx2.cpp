// The inner loops for AVX2. GCC takes the instruction set from the pragma; another compiler
// needs it on its command line, and without it this file has no table.
#include <cstdint>
#include <cstring>

#include "vector_kernels.h"

#if defined(__x86_64__) && ((defined(__GNUC__) && !defined(__clang__)) || defined(__AVX2__))

#if !defined(__clang__)
// Of GCC's own header, and of lambdas that are inlined everywhere.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wpsabi"
#endif
#include <immintrin.h>

#if !defined(__clang__)
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c")
#endif

#define HEDDLE_VECTOR_WIDTH 8
#include "vector_body.h"

namespace heddle::cpu {

namespace {
constexpr VectorKernels kTable = make_table("avx2");
}  // namespace

const VectorKernels* avx2_kernels() { return &kTable; }

}  // namespace heddle::cpu

#if !defined(__clang__)
#pragma GCC pop_options
#endif

#else

namespace heddle::cpu {

const VectorKernels* avx2_kernels() { return nullptr; }

}  // namespace heddle::cpu

#endif
