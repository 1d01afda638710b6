// Jobs that a server leaves in their midst, and the next one goes on with.
#include "engine/serve/job_checkpoints.h"

#include <atomic>
#include <mutex>

#include "engine/base/log.h"
#include "tests/engine/serve/service_fixture.h"
#include "tests/support/golden_files.h"
#include "tests/support/layers_file.h"

using namespace heddle;
using namespace heddle::test;
using engine::cat;
using engine::Json;

namespace {

constexpr int kWide = 1000, kSteps = 1000;  // a second or so
constexpr unsigned kNever = 1'000'000;      // steps: files are written at the end alone

struct Kept : Serving {
  Kept()
      : Serving([](engine::ServiceOptions& options) {
          options.runner.checkpoint_every = kNever;
          options.runner.shutdown = std::chrono::minutes(2);
          options.runner.jobs = 2;
        }) {
    folder.write("a.safetensors", LayersFile{"a", kWide, 1}.bytes());
  }

  // A loop, and `last`, a node that reads it.
  std::string looping(const std::string& last, int steps = kSteps) const {
    return cat(
        R"({"load": {"class_type": "test.load", "inputs": {"path": ")",
        (folder / "a.safetensors").string(),
        R"("}}, "loop": {"class_type": "test.planned_loop", "inputs": {"model": ["load", 0],)",
        "\"width\": ", kWide, ", \"steps\": ", steps, "}}, ", last, "}");
  }
  std::string showing_loop(int steps = kSteps) const {
    return looping(R"("show": {"class_type": "PreviewAny", "inputs": {"source": ["loop", 0]}})",
                   steps);
  }
  std::filesystem::path file_of(const std::string& id) const {
    return folder / "queue.db.checkpoints" / (id + ".checkpoint");
  }
  // The server ends, and nothing but its files is left. The next one waits to be told to go on.
  void end() {
    service->queue().pause_all(true);
    service.reset();
    engine.drop_cached();
  }
  void go_on() const { service->queue().pause_all(false); }
  // A job of a client that a server leaves in its midst, and as many steps as that takes: it may be
  // over before a busy machine tells us that it has begun.
  struct Left {
    std::string id;
    int steps = kSteps;
    double done = 0;  // the share that the client has heard of
  };
  Left leave_one();
};

// What a client hears of a job. It may still be told the end of one before.
struct Listener {
  SocketClient socket;
  std::string job;  // that is listened for
  explicit Listener(const Serving& serving, std::string id = {})
      : socket(serving.port(), "/ws?clientId=tab"), job(std::move(id)) {}

  // The next message of the job.
  Json next() {
    while (true) {
      Json message = socket.read_json();
      BOOST_TEST_REQUIRE(!message.is_null());
      const Json* id = message.at("data").find("prompt_id");
      if (id && id->as_string() == job) return message;
    }
  }
  // The share of the loop that has been done, at its next step; 1 at the end of the job.
  double next_share() {
    while (true) {
      const Json message = next();
      const std::string type = message.at("type").as_string();
      const Json& data = message.at("data");
      if (type == "progress" && data.at("node").as_string() == "loop")
        return data.at("value").as_double() / data.at("max").as_double();
      if (type == "executing" && data.at("node").is_null()) return 1;
    }
  }
  // Whether the loop runs before this node does, or before the job is over.
  bool hears_of_loop_before(const std::string& node) {
    bool has_heard = false;
    while (true) {
      const Json message = next();
      if (message.at("type").as_string() != "executing") continue;
      const Json& told = message.at("data").at("node");
      if (told.is_null() || told.as_string() == node) return has_heard;
      has_heard = has_heard || told.as_string() == "loop";
    }
  }
};

constexpr const char* kOfClient = ", \"client_id\": \"tab\"";

Kept::Left Kept::leave_one() {
  Left left;
  for (;; left.steps *= 2) {
    BOOST_TEST_REQUIRE(left.steps < 1'000'000);
    Listener before(*this);
    left.id = before.job = submit(showing_loop(left.steps), kOfClient);
    for (int heard = 0; heard < 5; ++heard) left.done = before.next_share();
    BOOST_TEST(!std::filesystem::exists(file_of(left.id)));
    end();
    if (std::filesystem::exists(file_of(left.id))) return left;
    start();
    go_on();
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(job_checkpoints)

BOOST_FIXTURE_TEST_CASE(a_job_goes_on_behind_its_last_step, Kept) {
  const Left left = leave_one();
  const std::string& id = left.id;
  start();
  BOOST_TEST(pending() == 1u);
  Listener after(*this, id);
  go_on();
  const double next = after.next_share();
  BOOST_TEST(next > left.done);
  BOOST_TEST(next < 1);
  const Json entry = ended(id);
  BOOST_TEST(entry.at("status").at("status_str").as_string() == "success");
  BOOST_TEST(entry.at("outputs").at("show").at("text").at(0).as_string() ==
             cat("tensor f32 (1, 1, ", kWide, ")"));
  wait_until([&] { return !std::filesystem::exists(file_of(id)); });
}

// Its file is written when it has given its memory back.
BOOST_FIXTURE_TEST_CASE(a_background_job_gives_way_at_its_next_step, Kept) {
  const std::string id = "night";
  double done = 0;
  {
    Listener before(*this, id);
    const std::string prompt = showing_loop(10 * kSteps);  // not over before it is interrupted
    service->queue().submit({{.id = id, .client = "tab", .is_background = true, .prompt = prompt}});
    for (int steps = 0; steps < 100; ++steps) done = before.next_share();
  }
  BOOST_TEST(!std::filesystem::exists(file_of(id)));
  const std::string first = submit(meeting(1, 2));
  wait_until([&] { return std::filesystem::exists(file_of(id)); });
  BOOST_TEST(running() == 2u);
  const std::string second = submit(meeting(2, 2));
  for (const std::string& one : {first, second})
    BOOST_TEST(ended(one).at("status").at("status_str").as_string() == "success");
  Listener after(*this, id);
  const double next = after.next_share();
  BOOST_TEST(next > done);
  BOOST_TEST(next < 1);
  post("/interrupt", cat("{\"prompt_id\": \"", id, "\"}"));
  BOOST_TEST(!ended(id).at("status").at("completed").as_bool());
}

// A server that is killed in between goes on from it: the queue asks for the time when it writes
// the end.
BOOST_FIXTURE_TEST_CASE(a_checkpoint_stays_until_the_end_is_stored, Kept) {
  service.reset();
  std::atomic<bool> is_there{false};
  options.runner.checkpoint_every = 100;
  options.queue.clock = [&] {
    namespace fs = std::filesystem;
    is_there = fs::directory_iterator(folder / "queue.db.checkpoints") != fs::directory_iterator();
    return std::int64_t{1000};
  };
  start();
  const std::string id = submit(showing_loop());
  BOOST_TEST(ended(id).at("status").at("completed").as_bool());
  BOOST_TEST(is_there);
  wait_until([&] { return !std::filesystem::exists(file_of(id)); });
}

BOOST_FIXTURE_TEST_CASE(what_cannot_be_gone_on_with_begins_anew, Kept) {
  for (const bool is_torn : {true, false}) BOOST_TEST_CONTEXT(is_torn) {
      const Left left = leave_one();
      const std::string& id = left.id;
      const std::string kept = read_text(file_of(id).string());
      BOOST_TEST_REQUIRE(kept.size() > 1000u);
      if (is_torn) {
        folder.write("queue.db.checkpoints/" + id + ".checkpoint", kept.substr(0, kept.size() / 2));
        start();
      } else {  // it is of another job, which waits: of two at once one would compute for both
        start();
        const std::string prompt = showing_loop(left.steps);
        service->queue().submit(
            {{.id = "other", .client = "tab", .is_paused = true, .prompt = prompt}});
        std::filesystem::rename(file_of(id), file_of("other"));
      }
      Listener after(*this, id);
      go_on();
      BOOST_TEST(after.next_share() <= 2.0 / left.steps);
      BOOST_TEST(ended(id).at("status").at("completed").as_bool());
      engine.drop_cached();
      if (is_torn) continue;
      after.job = "other";
      BOOST_TEST(post("/v1/jobs/other/resume", "").status == 200);
      BOOST_TEST(after.next_share() <= 2.0 / left.steps);
      BOOST_TEST(ended("other").at("status").at("completed").as_bool());
    }
}

BOOST_FIXTURE_TEST_CASE(a_server_may_begin_all_anew, Kept) {
  const Left left = leave_one();
  const std::string& id = left.id;
  options.runner.resumes = false;
  start();
  BOOST_TEST(!std::filesystem::exists(file_of(id)));
  Listener after(*this, id);
  go_on();
  BOOST_TEST(after.next_share() <= 2.0 / left.steps);
  BOOST_TEST(ended(id).at("status").at("completed").as_bool());
}

BOOST_FIXTURE_TEST_CASE(files_of_jobs_that_are_gone_are_removed, Kept) {
  const std::string id = service->queue().submit({{.is_paused = true, .prompt = showing(1)}})[0].id;
  service.reset();
  for (const std::string& name : {id + ".checkpoint", std::string("gone.checkpoint"),
                                  std::string(".torn"), std::string("readme")})
    folder.write("queue.db.checkpoints/" + name, "x");
  start();
  std::vector<std::string> left;
  for (const auto& file : std::filesystem::directory_iterator(folder / "queue.db.checkpoints"))
    left.push_back(file.path().filename());
  std::ranges::sort(left);
  std::vector<std::string> expected{id + ".checkpoint", "readme"};
  std::ranges::sort(expected);
  BOOST_TEST(left == expected, boost::test_tools::per_element());
}

// A disk that is full is no reason to fail.
BOOST_FIXTURE_TEST_CASE(a_job_whose_checkpoint_cannot_be_written_is_done_all_the_same, Kept) {
  service.reset();
  options.runner.checkpoint_every = 1;
  start();
  std::filesystem::remove_all(folder / "queue.db.checkpoints");
  folder.write("queue.db.checkpoints", "no folder");
  std::mutex mutex;
  std::string logged;
  engine::set_log_sink([&](engine::Level, std::string_view message) {
    const std::lock_guard lock(mutex);
    logged += cat(message, "\n");
  });
  const std::string id = submit(showing_loop());
  const Json entry = ended(id);
  engine::set_log_sink({});
  BOOST_TEST(entry.at("status").at("completed").as_bool());
  const std::lock_guard lock(mutex);
  BOOST_TEST(logged.find(cat("job ", id, ": no checkpoint was written: ")) != std::string::npos,
             logged);
}

// A node without steps does not come to an end: nobody waits for it longer than is allowed.
BOOST_FIXTURE_TEST_CASE(the_end_is_bounded_and_nodes_that_have_ended_are_not_run_again, Kept) {
  service.reset();
  options.runner.shutdown = std::chrono::milliseconds(50);
  start();
  const std::string flow = looping(
      R"("meet": {"class_type": "t.Meet", "inputs": {"value": 5, "count": 2}},
         "both": {"class_type": "t.Show", "inputs": {"value": ["meet", 0]}},
         "show": {"class_type": "PreviewAny", "inputs": {"source": ["loop", 0]}})");
  Listener before(*this);
  const std::string id = before.job = submit(flow, kOfClient);
  while (before.next_share() < 1) {
  }
  wait_until([&] { return std::filesystem::exists(file_of(id)); });
  end();
  start();
  Listener after(*this, id);
  go_on();
  const std::string other = submit(meeting(6, 2));
  BOOST_TEST(!after.hears_of_loop_before(""));
  BOOST_TEST(ended(id).at("outputs").size() == 2u);
  ended(other);
}

BOOST_AUTO_TEST_CASE(ids_that_make_no_name_have_no_file) {
  const TemporaryFolder folder;
  const engine::JobCheckpoints kept(folder / "kept");
  BOOST_TEST(kept.file_of("a-B_1") == folder / "kept/a-B_1.checkpoint");
  for (const std::string& id : {std::string(), std::string("../a"), std::string("a/b"),
                                std::string("a.b"), std::string(201, 'a')})
    BOOST_TEST(kept.file_of(id).empty(), id);
  BOOST_TEST(!kept.load("none"));
  BOOST_TEST(engine::JobCheckpoints({}).file_of("a").empty());
}

BOOST_AUTO_TEST_SUITE_END()
