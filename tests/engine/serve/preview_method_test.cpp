// What a job asks for, and what the server does otherwise.
#include "engine/serve/preview_method.h"

#include <boost/test/unit_test.hpp>

using namespace heddle::engine;
using heddle::PreviewMethod;

BOOST_AUTO_TEST_SUITE(preview_method)

BOOST_AUTO_TEST_CASE(a_job_may_ask_for_another_one) {
  const auto method_of = [](const char* extra) {
    Job job;
    job.extra_data = extra;
    return preview_method_of(job, PreviewMethod::linear);
  };
  BOOST_TEST((method_of(R"({"preview_method": "taesd"})") == PreviewMethod::taesd));
  BOOST_TEST((method_of(R"({"preview_method": "none"})") == PreviewMethod::none));
  BOOST_TEST((method_of(R"({"preview_method": "auto"})") == PreviewMethod::linear));
  // "default" is what the front end calls the server's own.
  for (const char* other :
       {"", "{}", "[]", R"({"preview_method": "default"})", R"({"preview_method": 5})"})
    BOOST_TEST((method_of(other) == PreviewMethod::linear), other);
}

BOOST_AUTO_TEST_SUITE_END()
