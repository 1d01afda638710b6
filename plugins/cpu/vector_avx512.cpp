// The inner loops for AVX-512. GCC takes the instruction set from the pragma; another compiler
// needs it on its command line, and without it this file has no table.
#include <cstdint>
#include <cstring>

#include "vector_kernels.h"

#if defined(__x86_64__) && ((defined(__GNUC__) && !defined(__clang__)) || defined(__AVX512F__))

#if !defined(__clang__)
// Of GCC's own header, and of lambdas that are inlined everywhere.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wpsabi"
#endif
#include <immintrin.h>

#if !defined(__clang__)
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")
#endif

#define HEDDLE_VECTOR_WIDTH 16
#include "vector_body.h"

namespace heddle::cpu {

namespace {
constexpr VectorKernels kTable = make_table("avx512");
}  // namespace

const VectorKernels* avx512_kernels() { return &kTable; }

}  // namespace heddle::cpu

#if !defined(__clang__)
#pragma GCC pop_options
#endif

#else

namespace heddle::cpu {

const VectorKernels* avx512_kernels() { return nullptr; }

}  // namespace heddle::cpu

#endif
