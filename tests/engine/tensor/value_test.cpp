#include "engine/tensor/value.h"

#include <boost/test/unit_test.hpp>

#include "engine/base/error.h"
#include "engine/tensor/tensor.h"

using namespace heddle::engine;

BOOST_AUTO_TEST_SUITE(value)

namespace {

std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

BOOST_AUTO_TEST_CASE(json_goes_to_values_and_back) {
  const Json json =
      parse_json(R"({"a": [1, 2.0, "x", null, true], "seed": 18446744073709551615})", "test");
  BOOST_TEST(write_json(to_json(*from_json(json))) ==
             R"({"a":[1,2.0,"x",null,true],"seed":18446744073709551615})");
}

BOOST_AUTO_TEST_CASE(an_unsigned_number_that_fits_is_an_integer) {
  BOOST_TEST(get_int(*make_value(std::uint64_t(7))) == 7);
  BOOST_TEST(kind_of(*make_value(std::uint64_t(7))) == HEDDLE_KIND_INT);
  BOOST_TEST(refusal([] { get_int(*make_value(~std::uint64_t(0))); }) ==
             "expected an integer below 2^63, got the integer 18446744073709551615");
  BOOST_TEST(refusal([] { get_uint(*make_value(std::int64_t(-1))); }) ==
             "expected an integer that is not negative, got the integer -1");
}

BOOST_AUTO_TEST_CASE(tensors_inside_records_and_lists_are_found_and_replaced) {
  const std::int64_t shape[] = {2};
  const Tensor a = make_host_tensor(make_info(HEDDLE_F32, shape)),
               b = make_host_tensor(make_info(HEDDLE_F32, shape));
  const Value record =
      make_record({{"samples", make_value(a)},
                   {"more", make_value(List{{make_value(b), make_value(std::int64_t(3))}})},
                   {"text", make_value("t")}});
  int count = 0;
  for_each_tensor(*record, [&](const Tensor&) { ++count; });
  BOOST_TEST(count == 2);
  const Value same = map_tensors(record, [](const Tensor& t) { return t; });
  BOOST_TEST((same == record));
  const Value changed = map_tensors(record, [&](const Tensor& t) { return t == b ? a : t; });
  BOOST_TEST((changed != record));
  BOOST_TEST(
      (get_tensor(*std::get<List>(std::get<Record>(changed->content).find("more")->get()->content)
                       .items[0]) == a));
}

BOOST_AUTO_TEST_CASE(a_view_that_leaves_its_memory_is_refused) {
  const std::int64_t shape[] = {4, 6};
  const Tensor t = make_host_tensor(make_info(HEDDLE_F32, shape));
  heddle_tensor_info part = t->info;
  part.shape[0] = 2;
  BOOST_TEST(view(t, part, 12)->offset_bytes == 48u);
  BOOST_TEST(refusal([&] { view(t, part, 13); }).find("leaves the tensor's memory") !=
             std::string::npos);
  BOOST_TEST(refusal([&] { view(t, part, -1); }).find("leaves the tensor's memory") !=
             std::string::npos);
}

BOOST_AUTO_TEST_CASE(impossible_shapes_are_refused) {
  const std::int64_t negative[] = {2, -1}, huge[] = {1ll << 40, 1ll << 40};
  BOOST_TEST(refusal([&] { make_info(HEDDLE_F32, negative); }).find("negative size -1") !=
             std::string::npos);
  BOOST_TEST(refusal([&] { make_info(HEDDLE_F32, huge); }).find("takes more than 256.0 TiB") !=
             std::string::npos);
  BOOST_TEST(refusal([&] { make_info(99, {}); }).find("no element type 99") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(values_of_one_content_have_one_hash) {
  const auto hash = [](const char* text) {
    Hasher hasher;
    BOOST_TEST(hash_value(*from_json(parse_json(text, "t")), hasher));
    return hasher.finish();
  };
  BOOST_TEST((hash("[1, \"a\"]") == hash("[1,\"a\"]")));
  BOOST_TEST((hash("[1, \"a\"]") != hash("[1.0, \"a\"]")));
  BOOST_TEST((hash("[[1], 2]") != hash("[[1, 2]]")));
}

BOOST_AUTO_TEST_SUITE_END()
