#include "engine/serve/run_progress.h"

#include <boost/test/unit_test.hpp>

using namespace heddle::engine;
using Kind = heddle::Event::Kind;

namespace {

struct Told {
  RunProgress progress;
  void tell(Kind kind, const char* node, double fraction = 0) {
    heddle::Event event{kind};
    event.node = node;
    event.class_type = "Class";
    event.device = "cpu:0";
    event.fraction = fraction;
    progress.take(event);
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(run_progress)

BOOST_FIXTURE_TEST_CASE(nodes_begin_go_on_and_end, Told) {
  tell(Kind::node_cached, "1");
  tell(Kind::node_started, "2");
  tell(Kind::node_started, "3");
  tell(Kind::node_progress, "3", 0.25);
  RunSnapshot now = progress.snapshot();
  BOOST_TEST_REQUIRE(now.nodes.size() == 2u);
  BOOST_TEST(now.nodes_done == 1u);
  BOOST_TEST(now.nodes[0].fraction == 0);
  BOOST_TEST(now.nodes[1].id == "3");
  BOOST_TEST(now.nodes[1].class_type == "Class");
  BOOST_TEST(now.nodes[1].device == "cpu:0");
  BOOST_TEST(now.nodes[1].fraction == 0.25);
  tell(Kind::node_done, "3");
  tell(Kind::node_progress, "3", 0.5);  // late
  now = progress.snapshot();
  BOOST_TEST(now.nodes.size() == 1u);
  BOOST_TEST(now.nodes_done == 2u);
}

BOOST_FIXTURE_TEST_CASE(a_run_waits_until_its_first_node, Told) {
  heddle::Event waits{Kind::run_waiting};
  waits.device = "host";
  waits.text = "others hold it";
  waits.bytes = 7;
  progress.take(waits);
  RunSnapshot now = progress.snapshot();
  BOOST_TEST(now.waits_for == "host");
  BOOST_TEST(now.waits_why == "others hold it");
  BOOST_TEST(now.waits_bytes == 7u);
  tell(Kind::warning, "");
  BOOST_TEST(progress.snapshot().waits_for == "host");
  tell(Kind::node_started, "1");
  now = progress.snapshot();
  BOOST_TEST(now.waits_for == "");
  BOOST_TEST(now.waits_bytes == 0u);
}

BOOST_FIXTURE_TEST_CASE(the_last_preview_is_kept, Told) {
  BOOST_TEST(!progress.preview().has_value());
  for (std::uint8_t shade : {7, 9}) {
    const std::vector<std::uint8_t> pixels(2 * 3 * 3, shade);
    heddle::Preview picture;
    picture.width = 2;
    picture.height = 3;
    picture.pixels = pixels.data();
    heddle::Event event{Kind::preview};
    event.preview = &picture;
    progress.take(event);
  }
  const RgbPicture last = progress.preview().value();
  BOOST_TEST(last.width == 2u);
  BOOST_TEST(last.height == 3u);
  BOOST_TEST(last.pixels == std::vector<std::uint8_t>(18, 9), boost::test_tools::per_element());
  BOOST_TEST(progress.snapshot().previews == 2u);
}

BOOST_AUTO_TEST_SUITE_END()
