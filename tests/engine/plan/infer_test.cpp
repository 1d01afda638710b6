#include "engine/plan/infer.h"

#include <boost/test/unit_test.hpp>

using heddle::core::get_int;
using heddle::core::get_str;
using heddle::core::make_record;
using heddle::core::make_value;
using heddle::core::part_of;
using heddle::core::Value;
using heddle::core::ValueSpec;

namespace {

Value entry(std::int64_t number) { return make_record({{"number", make_value(number)}}); }

Value nested() {
  return make_record({{"name", make_value("a")}, {"list", make_value(heddle::core::List{{entry(1), entry(2)}})}});
}

}  // namespace

BOOST_AUTO_TEST_SUITE(infer)

BOOST_AUTO_TEST_CASE(a_part_of_a_value_is_found_by_keys_and_indices) {
  const Value value = nested();
  BOOST_TEST(part_of(value, "").get() == value.get());
  BOOST_TEST(get_str(*part_of(value, "name")) == "a");
  BOOST_TEST(get_int(*part_of(value, "list.1.number")) == 2);
}

BOOST_AUTO_TEST_CASE(a_part_that_is_not_there_is_empty) {
  for (const char* path : {"nobody", "name.0", "list.2", "list.-1", "list.1x", "list..number", "list.0.number.0"})
    BOOST_TEST(!part_of(nested(), path), path);
  BOOST_TEST(!part_of(Value(), "name"));
}

BOOST_AUTO_TEST_CASE(a_part_is_found_in_a_known_part_of_a_value) {
  ValueSpec spec;
  spec.parts["left"] = nested();
  BOOST_TEST(get_int(*part_of(spec, "left.list.0.number")) == 1);
  BOOST_TEST(part_of(spec, "left").get() == spec.parts["left"].get());
  // A longer name is another part.
  BOOST_TEST(!part_of(spec, "lefty"));
  BOOST_TEST(!part_of(spec, ""));
}

BOOST_AUTO_TEST_SUITE_END()
