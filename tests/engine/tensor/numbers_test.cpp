#include "engine/tensor/numbers.h"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstdint>
#include <limits>

#include "engine/base/error.h"

using namespace heddle::engine;

namespace {

template <class T>
std::vector<float> floats(DType dtype, std::vector<T> elements) {
  std::vector<float> result(elements.size() * sizeof(T) / dtype_size(dtype));
  to_floats(dtype, std::as_bytes(std::span(elements)), result.data());
  return result;
}

// What the bits say by the format's definition.
double half(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
  const double size =
      exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  return (bits & 0x8000) != 0 ? -size : size;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(numbers)

BOOST_AUTO_TEST_CASE(every_finite_half_is_read_exactly) {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    if ((bits >> 10 & 31) == 31) continue;
    const float value = floats<std::uint16_t>(DType::f16, {std::uint16_t(bits)})[0];
    if (double(value) != half(std::uint16_t(bits)) || std::signbit(value) != ((bits & 0x8000) != 0))
      BOOST_TEST_REQUIRE(false, bits << " became " << value);
  }
  const std::vector<float> special = floats<std::uint16_t>(DType::f16, {0x7c00, 0xfc00, 0x7e00});
  BOOST_TEST(special[0] == std::numeric_limits<float>::infinity());
  BOOST_TEST(special[1] == -std::numeric_limits<float>::infinity());
  BOOST_TEST(std::isnan(special[2]));
}

BOOST_AUTO_TEST_CASE(bfloats_doubles_and_bytes_of_eight_bits_are_read) {
  BOOST_TEST(floats<std::uint16_t>(DType::bf16, {0x3f80, 0xc020, 0x0001}) ==
             (std::vector<float>{1, -2.5f, std::ldexp(1.0f, -133)}));
  BOOST_TEST(floats<double>(DType::f64, {1.0 / 3}) == (std::vector<float>{1.0f / 3}));
  // One, the greatest, the least above zero.
  BOOST_TEST(floats<std::uint8_t>(DType::f8_e4m3, {0x38, 0x7e, 0x01, 0xb8}) ==
             (std::vector<float>{1, 448, std::ldexp(1.0f, -9), -1}));
  BOOST_TEST(floats<std::uint8_t>(DType::f8_e5m2, {0x3c, 0x7b, 0x01}) ==
             (std::vector<float>{1, 57344, std::ldexp(1.0f, -16)}));
  BOOST_TEST(std::isnan(floats<std::uint8_t>(DType::f8_e4m3, {0x7f})[0]));
  BOOST_TEST(std::isinf(floats<std::uint8_t>(DType::f8_e5m2, {0x7c})[0]));
}

BOOST_AUTO_TEST_CASE(integers_become_numbers_but_no_floats) {
  const std::vector<std::int64_t> whole{-3, 1 << 20};
  BOOST_TEST(to_doubles(DType::i64, std::as_bytes(std::span(whole))) ==
             (std::vector<double>{-3, 1 << 20}));
  const std::vector<std::int8_t> small{-128, 7};
  BOOST_TEST(to_doubles(DType::i8, std::as_bytes(std::span(small))) ==
             (std::vector<double>{-128, 7}));
  float ignored = 0;
  BOOST_CHECK_THROW(to_floats(DType::i8, std::as_bytes(std::span(small).first(1)), &ignored),
                    Error);
}

BOOST_AUTO_TEST_SUITE_END()
