#include "engine/tensor/dtype.h"

#include <boost/test/unit_test.hpp>
#include <set>
#include <string>

#include "tests/support/refusal.h"

using namespace heddle::engine;

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

BOOST_AUTO_TEST_CASE(block_formats_have_names_for_people_and_sizes_of_blocks_only) {
  struct Case {
    std::int32_t number;
    const char* name;
    std::int64_t elements, bytes;
  };
  for (const Case& one : {Case{16, "q8_0", 32, 34},
                          {17, "q4_0", 32, 18},
                          {18, "q4_1", 32, 20},
                          {19, "q5_0", 32, 22},
                          {20, "q5_1", 32, 24},
                          {21, "q4_k", 256, 144},
                          {22, "q5_k", 256, 176},
                          {23, "q6_k", 256, 210},
                          {24, "i8_scaled", 256, 260},
                          {25, "i8_rotated", 256, 260},
                          {26, "nvfp4", 256, 148},
                          {27, "i4_rotated", 256, 132},
                          {28, "i4_coded", 256, 148},
                          {29, "mxfp8", 256, 264},
                          {30, "i4_grouped", 256, 160}}) {
    BOOST_REQUIRE(is_dtype(one.number));
    const auto dtype = static_cast<DType>(one.number);
    BOOST_TEST(dtype_name(dtype) == one.name);
    BOOST_TEST(safetensors_name(dtype) == "");
    BOOST_TEST((parse_dtype(one.name) == dtype));
    BOOST_TEST(is_block_format(dtype));
    BOOST_TEST(is_floating(dtype));
    BOOST_TEST(dtype_block(dtype).elements == one.elements);
    BOOST_TEST(dtype_bytes(dtype, 3 * one.elements) == 3 * one.bytes);
    const std::string sizeless = heddle::test::refusal_of([&] { dtype_size(dtype); }).what();
    BOOST_TEST(sizeless.starts_with("an element of " + std::string(one.name) + " has no size"));
    const std::string cut =
        heddle::test::refusal_of([&] { dtype_bytes(dtype, one.elements + 1); }).what();
    BOOST_TEST(cut.find("no whole number of its blocks of " + std::to_string(one.elements)) !=
               cut.npos);
  }
  BOOST_TEST(!parse_safetensors_dtype("").has_value());
  BOOST_TEST(!is_block_format(DType::f8_e4m3));
  BOOST_TEST(dtype_bytes(DType::f16, -3) == -6);
}

BOOST_AUTO_TEST_CASE(unknown_names_are_nothing_and_unknown_numbers_an_error) {
  BOOST_TEST(!parse_dtype("F32").has_value());
  BOOST_TEST(!parse_safetensors_dtype("f32").has_value());
  BOOST_TEST(!parse_safetensors_dtype("F4").has_value());
  for (const std::int32_t number : {0, 31, -1, 1000}) {
    BOOST_TEST(!is_dtype(number));
    const Error error = heddle::test::refusal_of([&] { dtype_size(static_cast<DType>(number)); });
    BOOST_TEST(std::string(error.what()) ==
               "no element type has the number " + std::to_string(number) + "; known are 1 to 30");
  }
}

BOOST_AUTO_TEST_SUITE_END()
