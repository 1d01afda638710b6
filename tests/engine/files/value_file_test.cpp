#include "engine/files/value_file.h"

#include <boost/test/unit_test.hpp>
#include <cstring>
#include <limits>

#include "engine/base/text.h"
#include "engine/tensor/shape.h"
#include "tests/support/refusal.h"

using namespace heddle::engine;
using heddle::test::refusal_of;

BOOST_AUTO_TEST_SUITE(value_file_test)

namespace {

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

Value numbers(heddle_dtype dtype, std::vector<std::int64_t> shape, const void* data) {
  const Tensor tensor = make_host_tensor(make_info(dtype, shape));
  std::memcpy(tensor->data(), data, dense_bytes(tensor->info));
  return make_value(tensor);
}

Value list_of(std::vector<Value> items) { return make_value(List{std::move(items)}); }

// What a text encoder might give, and whatever else there is.
std::vector<Value> everything() {
  const float real[] = {1.5f, -0.0f, std::numeric_limits<float>::infinity(), 4, 5, 6};
  const std::uint16_t half[] = {0x3c00, 0x7e01, 0x8000};
  return {list_of({make_record({{"cross", numbers(HEDDLE_F32, {1, 2, 3}, real)},
                                {"pooled", numbers(HEDDLE_F16, {3}, half)},
                                {"guidance", make_value(3.5)},
                                {"a \"quoted\" \"heddle.checksum\":\"", make_value("\"\\\n")}})}),
          make_value(None{}),
          make_value(true),
          make_value(std::int64_t{-7}),
          make_value(std::numeric_limits<std::uint64_t>::max()),
          make_value(0.1),
          numbers(HEDDLE_F32, {0, 4}, real),
          numbers(HEDDLE_I64, {}, "\1\2\3\4\5\6\7"),
          list_of({}),
          make_record({})};
}

bool are_same(const heddle_value& a, const heddle_value& b) {
  if (kind_of(a) != kind_of(b)) return false;
  if (const auto* list = std::get_if<List>(&a.content)) {
    const auto& other = std::get<List>(b.content).items;
    return std::ranges::equal(list->items, other,
                              [](const Value& x, const Value& y) { return are_same(*x, *y); });
  }
  if (const auto* record = std::get_if<Record>(&a.content)) {
    const auto& other = std::get<Record>(b.content).fields;
    return std::ranges::equal(record->fields, other, [](const auto& x, const auto& y) {
      return x.first == y.first && are_same(*x.second, *y.second);
    });
  }
  if (kind_of(a) != HEDDLE_KIND_TENSOR) return to_json(a) == to_json(b);
  const Tensor &x = get_tensor(a), &y = get_tensor(b);
  return describe(x->info) == describe(y->info) &&
         std::memcmp(x->data(), y->data(), dense_bytes(x->info)) == 0;
}

}  // namespace

BOOST_AUTO_TEST_CASE(values_come_back_as_they_were) {
  const std::vector<Value> values = everything();
  const std::optional<std::string> file = write_values(values, "name");
  BOOST_REQUIRE(file);
  const std::vector<Value> back = read_values(bytes_of(*file), "name", "f");
  BOOST_REQUIRE_EQUAL(back.size(), values.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    BOOST_TEST(are_same(*values[i], *back[i]), describe(*values[i]) << ", " << describe(*back[i]));
  BOOST_TEST(*write_values(back, "name") == *file);
}

BOOST_AUTO_TEST_CASE(a_transposed_tensor_comes_back_row_by_row) {
  const float data[] = {1, 2, 3, 4, 5, 6};
  const Tensor rows = get_tensor(*numbers(HEDDLE_F32, {2, 3}, data));
  heddle_tensor_info turned = make_info(HEDDLE_F32, std::vector<std::int64_t>{3, 2});
  turned.stride[0] = 1;
  turned.stride[1] = 3;
  const std::optional<std::string> file =
      write_values(std::vector{make_value(view(rows, turned, 0))}, "n");
  BOOST_REQUIRE(file);
  const std::vector<Value> back = read_values(bytes_of(*file), "n", "f");
  const float expected[] = {1, 4, 2, 5, 3, 6};
  BOOST_TEST(std::memcmp(get_tensor(*back[0])->data(), expected, sizeof expected) == 0);
}

BOOST_AUTO_TEST_CASE(every_damaged_byte_is_noticed) {
  const std::string file = *write_values(everything(), "name");
  for (std::size_t i = 0; i < file.size(); ++i)
    for (const char flip : {'\1', '\x40'}) {
      std::string damaged = file;
      damaged[i] = char(damaged[i] ^ flip);
      BOOST_TEST(refusal_of([&] { read_values(bytes_of(damaged), "name", "f"); }).what() !=
                     std::string("nothing was thrown"),
                 "byte " << i << " of " << file.size());
    }
  for (std::size_t size = 0; size < file.size(); size += 7)
    BOOST_TEST(refusal_of([&] { read_values(bytes_of(file).first(size), "name", "f"); }).what() !=
               std::string("nothing was thrown"));
}

BOOST_AUTO_TEST_CASE(a_file_of_another_name_is_refused) {
  const std::string file = *write_values(everything(), "one");
  BOOST_TEST(refusal_of([&] { read_values(bytes_of(file), "two", "f.safetensors"); }).what() ==
             "f.safetensors: it holds 'one', not 'two'");
}

BOOST_AUTO_TEST_CASE(what_no_file_can_hold_is_left_out) {
  const Value object =
      make_value(std::make_shared<const Object>("test/0", nullptr, nullptr, nullptr));
  BOOST_TEST(!write_values(std::vector{make_value(true), list_of({object})}, "n"));
}

BOOST_AUTO_TEST_SUITE_END()
