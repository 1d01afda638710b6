// A build without FFmpeg's libraries has no nodes of video and sound to test.
#include <boost/test/unit_test.hpp>

namespace {

boost::test_tools::assertion_result is_there(boost::unit_test::test_unit_id) {
  boost::test_tools::assertion_result there(false);
  there.message() << "the video plugin is left out, FFmpeg's libraries are missing";
  return there;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(video)

BOOST_AUTO_TEST_CASE(nodes_of_video, *boost::unit_test::precondition(is_there)) {
  BOOST_ERROR("the video plugin is there, and is not tested");
}

BOOST_AUTO_TEST_SUITE_END()
