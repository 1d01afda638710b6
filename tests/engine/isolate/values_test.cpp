#include "engine/isolate/values.h"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>

#include "engine/isolate/worker_memory.h"
#include "engine/tensor/shape.h"

using namespace heddle::engine;

BOOST_AUTO_TEST_SUITE(isolated_values)

namespace {

Value all_kinds() {
  const std::int64_t shape[] = {2, 3};
  const Tensor tensor = make_host_tensor(make_info(HEDDLE_F32, shape));
  for (int i = 0; i < 6; ++i) reinterpret_cast<float*>(tensor->data())[i] = float(i) - 2.5f;
  List spread{{make_value("a"), make_value("b")}, true};
  return make_record({
      {"none", make_value(None{})},
      {"bool", make_value(true)},
      {"int", make_value(std::numeric_limits<std::int64_t>::min())},
      {"uint", make_value(std::numeric_limits<std::uint64_t>::max())},
      {"float", make_value(-0.0)},
      {"str", make_value(std::string("a\0b\xc3\xa4", 5))},
      {"empty", make_value(std::string())},
      {"tensor", make_value(Tensor(tensor))},
      {"list", make_value(List{{make_value(1.5), make_value(List{}), make_value(None{})}})},
      {"spread", make_value(std::move(spread))},
      {"record", make_record({})},
      {"blocker", make_value(Blocker{"why"})},
  });
}

// Whether both are the same to whoever reads them.
void check_equal(const heddle_value* a, const heddle_value* b) {
  BOOST_TEST_REQUIRE((a == nullptr) == (b == nullptr));
  if (a == nullptr) return;
  BOOST_TEST_REQUIRE(kind_of(*a) == kind_of(*b));
  if (const auto* list = std::get_if<List>(&a->content)) {
    const List& other = std::get<List>(b->content);
    BOOST_TEST(list->is_spread == other.is_spread);
    BOOST_TEST_REQUIRE(list->items.size() == other.items.size());
    for (std::size_t i = 0; i < list->items.size(); ++i)
      check_equal(list->items[i].get(), other.items[i].get());
  } else if (const auto* record = std::get_if<Record>(&a->content)) {
    const Record& other = std::get<Record>(b->content);
    BOOST_TEST_REQUIRE(record->fields.size() == other.fields.size());
    for (std::size_t i = 0; i < record->fields.size(); ++i) {
      BOOST_TEST(record->fields[i].first == other.fields[i].first);
      check_equal(record->fields[i].second.get(), other.fields[i].second.get());
    }
  } else if (const auto* tensor = std::get_if<Tensor>(&a->content)) {
    const Tensor& other = std::get<Tensor>(b->content);
    BOOST_TEST_REQUIRE(describe((*tensor)->info) == describe(other->info));
    BOOST_TEST(std::memcmp((*tensor)->data(), other->data(), dense_bytes(other->info)) == 0);
  } else if (const auto* blocker = std::get_if<Blocker>(&a->content)) {
    BOOST_TEST(blocker->message == std::get<Blocker>(b->content).message);
  } else {
    Hasher of_a, of_b;
    BOOST_TEST(hash_value(*a, of_a));
    BOOST_TEST(hash_value(*b, of_b));
    BOOST_TEST((of_a.finish() == of_b.finish()));
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(values_of_each_kind_come_back_equal) {
  WorkerMemory memory;
  WorkerEnd end(memory);
  const Value value = all_kinds();
  BytesWriter to;
  write_value(to, value.get(), end);
  BytesReader from(to.bytes());
  check_equal(read_value(from, end).get(), value.get());
  BOOST_TEST(from.rest().empty());
}

BOOST_AUTO_TEST_CASE(what_is_cut_off_anywhere_is_refused) {
  WorkerMemory memory;
  WorkerEnd end(memory);
  BytesWriter to;
  write_value(to, all_kinds().get(), end);
  for (std::size_t size = 0; size < to.bytes().size(); ++size) {
    BytesReader from(std::string_view(to.bytes()).substr(0, size));
    BOOST_CHECK_THROW(read_value(from, end), Error);
  }
}

BOOST_AUTO_TEST_CASE(what_is_absent_has_no_place_inside) {
  WorkerMemory memory;
  WorkerEnd end(memory);
  for (const Value& value : {make_value(List{{Value()}}), make_record({{"field", Value()}})}) {
    BytesWriter to;
    write_value(to, value.get(), end);
    BytesReader from(to.bytes());
    BOOST_CHECK_THROW(read_value(from, end), Error);
  }
  BytesWriter nothing;
  write_value(nothing, nullptr, end);
  BytesReader from(nothing.bytes());
  BOOST_TEST(!read_value(from, end));
}

BOOST_AUTO_TEST_CASE(lists_within_lists_have_an_end) {
  WorkerMemory memory;
  WorkerEnd end(memory);
  Value value = make_value(1.0);
  for (int i = 0; i < 300; ++i) value = make_value(List{{value}});
  BytesWriter to;
  BOOST_CHECK_THROW(write_value(to, value.get(), end), Error);
  const std::string deep(10'000, char(HEDDLE_KIND_LIST));  // each a flag and part of a count, too
  BytesReader from(deep);
  BOOST_CHECK_THROW(read_value(from, end), Error);
}

BOOST_AUTO_TEST_SUITE_END()
