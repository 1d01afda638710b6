// A copy of the queue, taken from a server that is at work.
#include "tests/engine/serve/service_fixture.h"

using namespace heddle;
using namespace heddle::test;

BOOST_AUTO_TEST_SUITE(backup_routes)

BOOST_FIXTURE_TEST_CASE(a_copy_of_the_queue_has_all_of_it, Serving) {
  const std::string done = submit(showing(1));
  ended(done);
  const std::string runs = submit(meeting(1, 2));
  wait_until([&] { return running() == 1; });
  service->queue().pause_all(true);
  const std::string waits = submit(showing(2));
  const Reply reply = get("/internal/queue_backup");
  BOOST_TEST(reply.status == 200);
  BOOST_TEST(reply.header("content-type") == "application/vnd.sqlite3");
  BOOST_TEST(reply.header("content-disposition").starts_with("attachment"));
  folder.write("copy.db", reply.body);
  {
    const engine::JobQueue copy(folder / "copy.db");
    BOOST_TEST((copy.find(done)->state == engine::JobState::done));
    BOOST_TEST((copy.find(runs)->state == engine::JobState::pending));
    BOOST_TEST(copy.find(waits)->prompt == service->queue().find(waits)->prompt);
    BOOST_TEST(copy.is_paused());
  }
  BOOST_TEST(running() == 1u);  // nothing of it has changed here
  for (const auto& file : std::filesystem::directory_iterator(folder.path()))
    BOOST_TEST(file.path().filename().string().find(".backup") == std::string::npos, file);
  post("/interrupt", "");
}

BOOST_AUTO_TEST_SUITE_END()
