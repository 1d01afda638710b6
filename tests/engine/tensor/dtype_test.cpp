#include "engine/tensor/dtype.h"

#include <boost/test/unit_test.hpp>
#include <set>
#include <string>

#include "tests/support/refusal.h"

using namespace heddle::core;

BOOST_AUTO_TEST_SUITE(dtype_test)

BOOST_AUTO_TEST_CASE(every_type_has_one_name_of_each_sort_and_both_lead_back) {
  std::set<std::string_view> names;
  for (std::int32_t number = 1; number <= 15; ++number) {
    BOOST_REQUIRE(is_dtype(number));
    const auto dtype = static_cast<DType>(number);
    names.insert(dtype_name(dtype));
    names.insert(safetensors_name(dtype));
    BOOST_TEST((parse_dtype(dtype_name(dtype)) == dtype));
    BOOST_TEST((parse_safetensors_dtype(safetensors_name(dtype)) == dtype));
  }
  BOOST_TEST(names.size() == 30u);
}

BOOST_AUTO_TEST_CASE(sizes_are_bytes_per_element) {
  BOOST_TEST(dtype_size(DType::f32) == 4u);
  BOOST_TEST(dtype_size(DType::bf16) == 2u);
  BOOST_TEST(dtype_size(DType::f8_e4m3) == 1u);
  BOOST_TEST(dtype_size(DType::bool8) == 1u);
  BOOST_TEST(dtype_size(DType::u64) == 8u);
  BOOST_TEST(is_floating(DType::f8_e5m2));
  BOOST_TEST(!is_floating(DType::bool8));
}

BOOST_AUTO_TEST_CASE(unknown_names_are_nothing_and_unknown_numbers_an_error) {
  BOOST_TEST(!parse_dtype("F32").has_value());
  BOOST_TEST(!parse_safetensors_dtype("f32").has_value());
  BOOST_TEST(!parse_safetensors_dtype("F4").has_value());
  for (const std::int32_t number : {0, 16, 17, -1, 1000}) {
    BOOST_TEST(!is_dtype(number));
    const Error error = heddle::test::refusal_of([&] { dtype_size(static_cast<DType>(number)); });
    BOOST_TEST(std::string(error.what()) ==
               "no element type has the number " + std::to_string(number) + "; known are 1 to 15");
  }
}

BOOST_AUTO_TEST_SUITE_END()
