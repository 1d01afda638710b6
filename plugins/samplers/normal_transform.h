// The Box-Muller step of `torch.randn` on groups of sixteen uniforms, in the three implementations
// that random.h chooses from. Internal to the noise code; pure functions, any thread.
//
// A group is 16 floats in [0, 1): values 0 to 7 are u1, values 8 to 15 their partners u2. In place,
// value j becomes R cos t and value j + 8 becomes R sin t with R = sqrt(-2 ln(1 - u1)), t = 2 pi
// u2. REQUIRES: groups.size() is a multiple of 16.
#pragma once

#include <span>

namespace heddle::samplers {

inline constexpr int kNormalGroup = 16;

// As PyTorch's AVX2 build; the two functions give the same bits.
void transform_contracted_scalar(std::span<float> groups);
void transform_contracted_avx2(std::span<float> groups);  // REQUIRES: has_avx2_normals()

// As PyTorch's portable build, with the C library's functions.
void transform_library(std::span<float> groups);

// Coefficients of the contracted form (Cephes' single-precision logf, sinf and cosf, which the AVX2
// mathematics of PyTorch descends from).
namespace contracted {
inline constexpr float kTwoPi = 6.2831855f;
inline constexpr float kSqrtHalf = 0.707106781186547524f;
inline constexpr float kLog[9] = {7.0376836292e-2f,  -1.1514610310e-1f, 1.1676998740e-1f,
                                  -1.2420140846e-1f, 1.4249322787e-1f,  -1.6668057665e-1f,
                                  2.0000714765e-1f,  -2.4999993993e-1f, 3.3333331174e-1f};
inline constexpr float kLogQ1 = -2.12194440e-4f;
inline constexpr float kLogQ2 = 0.693359375f;
inline constexpr float kFourOverPi = 1.27323954473516f;
// pi/4 in three parts, negated: the argument reduction subtracts them one after the other.
inline constexpr float kReduce[3] = {-0.78515625f, -2.4187564849853515625e-4f,
                                     -3.77489497744594108e-8f};
inline constexpr float kCos[3] = {2.443315711809948e-5f, -1.388731625493765e-3f,
                                  4.166664568298827e-2f};
inline constexpr float kSin[3] = {-1.9515295891e-4f, 8.3321608736e-3f, -1.6666654611e-1f};
}  // namespace contracted

}  // namespace heddle::samplers
