#include "engine/graph/parallel_names.h"

#include <boost/test/unit_test.hpp>

#include "engine/graph/workflow_keys.h"

using namespace heddle::engine;

BOOST_AUTO_TEST_SUITE(parallel_names)

BOOST_AUTO_TEST_CASE(every_mode_is_itself) {
  for (const std::string_view mode : kParallelModes)
    BOOST_TEST(canonical_parallel(mode).value_or("") == mode);
}

BOOST_AUTO_TEST_CASE(parts_may_stand_in_any_order) {
  BOOST_TEST(canonical_parallel("sequence+cfg").value_or("") == "cfg+sequence");
  BOOST_TEST(canonical_parallel("layers+data+cfg").value_or("") == "cfg+data+layers");
}

BOOST_AUTO_TEST_CASE(what_does_not_go_together_is_no_mode) {
  for (const char* name : {"", "+", "cfg+", "cfg+cfg", "cfg+none", "layers+sequence",
                           "sequence+tensor", "cfg sequence", "CFG"})
    BOOST_TEST(!canonical_parallel(name).has_value(), name);
  BOOST_TEST(parallel_advice("cfg+sequenc").find("Did you mean 'cfg+sequence'?") !=
             std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
