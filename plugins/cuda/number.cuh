// Numbers of any element type, read without loss and written with one rounding: to floats to
// nearest even, what is too large becoming infinity, or NaN in f8_e4m3, which has no infinity; to
// integers toward zero and saturated, NaN being 0.
#pragma once

#include <cuda_fp8.h>

#include <climits>

#include "view.cuh"

namespace heddle::cuda {

// A number without loss: floats as double, integers as they are.
struct Number {
  enum Kind { kFloat, kSigned, kUnsigned } kind;
  double real;
  long long whole;             // kSigned
  unsigned long long natural;  // kUnsigned
};

__device__ inline Number real(double value) { return {Number::kFloat, value, 0, 0}; }
__device__ inline Number whole(long long value) { return {Number::kSigned, 0, value, 0}; }
__device__ inline Number natural(unsigned long long value) {
  return {Number::kUnsigned, 0, 0, value};
}

__device__ inline double from_f8(unsigned char bits, __nv_fp8_interpretation_t form) {
  return static_cast<double>(__half2float(__half(__nv_cvt_fp8_to_halfraw(bits, form))));
}

__device__ inline Number load_number(const void* data, std::int32_t dtype, std::int64_t i) {
  switch (dtype) {
    case HEDDLE_F32:
    case HEDDLE_F16:
    case HEDDLE_BF16:
      return real(load(data, dtype, i));
    case HEDDLE_F64:
      return real(static_cast<const double*>(data)[i]);
    case HEDDLE_F8_E4M3:
      return real(from_f8(static_cast<const unsigned char*>(data)[i], __NV_E4M3));
    case HEDDLE_F8_E5M2:
      return real(from_f8(static_cast<const unsigned char*>(data)[i], __NV_E5M2));
    case HEDDLE_I8:
      return whole(static_cast<const signed char*>(data)[i]);
    case HEDDLE_I16:
      return whole(static_cast<const short*>(data)[i]);
    case HEDDLE_I32:
      return whole(static_cast<const int*>(data)[i]);
    case HEDDLE_I64:
      return whole(static_cast<const long long*>(data)[i]);
    case HEDDLE_U8:
      return natural(static_cast<const unsigned char*>(data)[i]);
    case HEDDLE_U16:
      return natural(static_cast<const unsigned short*>(data)[i]);
    case HEDDLE_U32:
      return natural(static_cast<const unsigned*>(data)[i]);
    case HEDDLE_U64:
      return natural(static_cast<const unsigned long long*>(data)[i]);
    default:
      return natural(static_cast<const unsigned char*>(data)[i] != 0);  // HEDDLE_BOOL8
  }
}

// Truncated toward zero, saturated; NaN is 0.
__device__ inline long long to_signed(const Number& x, long long low, long long high) {
  if (x.kind == Number::kSigned) return x.whole < low ? low : x.whole > high ? high : x.whole;
  if (x.kind == Number::kUnsigned)
    return x.natural > static_cast<unsigned long long>(high) ? high
                                                             : static_cast<long long>(x.natural);
  if (isnan(x.real)) return 0;
  if (x.real <= static_cast<double>(low)) return low;
  if (x.real >= static_cast<double>(high)) return high;
  return static_cast<long long>(x.real);
}

__device__ inline unsigned long long to_unsigned(const Number& x, unsigned long long high) {
  if (x.kind == Number::kUnsigned) return x.natural > high ? high : x.natural;
  if (x.kind == Number::kSigned)
    return x.whole <= 0 ? 0
           : static_cast<unsigned long long>(x.whole) > high
               ? high
               : static_cast<unsigned long long>(x.whole);
  if (isnan(x.real) || x.real <= 0) return 0;
  if (x.real >= static_cast<double>(high)) return high;
  return static_cast<unsigned long long>(x.real);
}

__device__ inline double to_double(const Number& x) {
  if (x.kind == Number::kSigned) return __ll2double_rn(x.whole);
  return x.kind == Number::kUnsigned ? __ull2double_rn(x.natural) : x.real;
}

// Each conversion rounds once, so long integers go directly.
__device__ inline float to_float(const Number& x) {
  if (x.kind == Number::kSigned) return __ll2float_rn(x.whole);
  return x.kind == Number::kUnsigned ? __ull2float_rn(x.natural) : __double2float_rn(x.real);
}
__device__ inline __half to_half(const Number& x) {
  if (x.kind == Number::kSigned) return __ll2half_rn(x.whole);
  return x.kind == Number::kUnsigned ? __ull2half_rn(x.natural) : __double2half(x.real);
}
__device__ inline __nv_bfloat16 to_bfloat(const Number& x) {
  if (x.kind == Number::kSigned) return __ll2bfloat16_rn(x.whole);
  return x.kind == Number::kUnsigned ? __ull2bfloat16_rn(x.natural) : __double2bfloat16(x.real);
}

__device__ inline bool is_zero(const Number& x) {
  return x.kind == Number::kSigned     ? x.whole == 0
         : x.kind == Number::kUnsigned ? x.natural == 0
                                       : x.real == 0;
}

__device__ inline void store_number(void* data, std::int32_t dtype, std::int64_t i,
                                    const Number& x) {
  switch (dtype) {
    case HEDDLE_F32:
      static_cast<float*>(data)[i] = to_float(x);
      return;
    case HEDDLE_F64:
      static_cast<double*>(data)[i] = to_double(x);
      return;
    case HEDDLE_F16:
      static_cast<__half*>(data)[i] = to_half(x);
      return;
    case HEDDLE_BF16:
      static_cast<__nv_bfloat16*>(data)[i] = to_bfloat(x);
      return;
    case HEDDLE_F8_E4M3:
      static_cast<unsigned char*>(data)[i] =
          __nv_cvt_double_to_fp8(to_double(x), __NV_NOSAT, __NV_E4M3);
      return;
    case HEDDLE_F8_E5M2:
      static_cast<unsigned char*>(data)[i] =
          __nv_cvt_double_to_fp8(to_double(x), __NV_NOSAT, __NV_E5M2);
      return;
    case HEDDLE_I8:
      static_cast<signed char*>(data)[i] =
          static_cast<signed char>(to_signed(x, SCHAR_MIN, SCHAR_MAX));
      return;
    case HEDDLE_I16:
      static_cast<short*>(data)[i] = static_cast<short>(to_signed(x, SHRT_MIN, SHRT_MAX));
      return;
    case HEDDLE_I32:
      static_cast<int*>(data)[i] = static_cast<int>(to_signed(x, INT_MIN, INT_MAX));
      return;
    case HEDDLE_I64:
      static_cast<long long*>(data)[i] = to_signed(x, LLONG_MIN, LLONG_MAX);
      return;
    case HEDDLE_U8:
      static_cast<unsigned char*>(data)[i] = static_cast<unsigned char>(to_unsigned(x, UCHAR_MAX));
      return;
    case HEDDLE_U16:
      static_cast<unsigned short*>(data)[i] =
          static_cast<unsigned short>(to_unsigned(x, USHRT_MAX));
      return;
    case HEDDLE_U32:
      static_cast<unsigned*>(data)[i] = static_cast<unsigned>(to_unsigned(x, UINT_MAX));
      return;
    case HEDDLE_U64:
      static_cast<unsigned long long*>(data)[i] = to_unsigned(x, ULLONG_MAX);
      return;
    default:
      static_cast<unsigned char*>(data)[i] = is_zero(x) ? 0 : 1;  // HEDDLE_BOOL8; NaN is true
  }
}

}  // namespace heddle::cuda
