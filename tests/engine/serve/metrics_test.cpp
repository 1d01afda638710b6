#include "engine/serve/metrics.h"

#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "tests/engine/serve/v1_fixture.h"

using namespace heddle;
using namespace heddle::test;
using engine::cat;
using engine::Exposition;
using engine::JobState;
using engine::Metrics;

namespace {

bool has_line(const std::string& text, const std::string& line) {
  return cat("\n", text).find(cat("\n", line, "\n")) != std::string::npos;
}

std::string text_of(const Metrics& metrics) {
  Exposition to;
  metrics.write(to);
  return to.text();
}

void tell(Metrics& metrics, heddle::Event::Kind kind, const char* class_type, double seconds) {
  heddle::Event event{kind};
  event.class_type = class_type;
  event.seconds = seconds;
  metrics.take(event);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(metrics)

BOOST_AUTO_TEST_CASE(labels_are_escaped) {
  Exposition to;
  to.family("heddle_x", "gauge", "A thing.");
  to.sample({}, 1.5);
  to.sample({{"a", "x\"y\\z\n"}, {"b", ""}}, 2);
  BOOST_TEST(to.text() ==
             "# HELP heddle_x A thing.\n# TYPE heddle_x gauge\nheddle_x 1.5\n"
             "heddle_x{a=\"x\\\"y\\\\z\\n\",b=\"\"} 2\n");
}

BOOST_AUTO_TEST_CASE(histograms_count_what_is_not_above_a_bound) {
  Metrics metrics;
  for (const double seconds : {0.1, 0.2, 7.0, 1e6}) metrics.job_began(seconds);
  const std::string text = text_of(metrics);
  BOOST_TEST(has_line(text, "# TYPE heddle_job_wait_seconds histogram"));
  for (const char* line :
       {"heddle_job_wait_seconds_bucket{le=\"0.01\"} 0",
        "heddle_job_wait_seconds_bucket{le=\"0.1\"} 1",
        "heddle_job_wait_seconds_bucket{le=\"0.5\"} 2",
        "heddle_job_wait_seconds_bucket{le=\"5\"} 2", "heddle_job_wait_seconds_bucket{le=\"10\"} 3",
        "heddle_job_wait_seconds_bucket{le=\"7200\"} 3",
        "heddle_job_wait_seconds_bucket{le=\"+Inf\"} 4", "heddle_job_wait_seconds_count 4"})
    BOOST_TEST(has_line(text, line), line);
}

BOOST_AUTO_TEST_CASE(nodes_and_ends_are_counted) {
  Metrics metrics;
  tell(metrics, heddle::Event::Kind::node_done, "A", 0.5);
  tell(metrics, heddle::Event::Kind::node_done, "A", 0.25);
  tell(metrics, heddle::Event::Kind::node_cached, "A", 0);
  tell(metrics, heddle::Event::Kind::node_started, "B", 0);
  heddle::Event step{heddle::Event::Kind::node_progress};
  step.class_type = "A";
  for (const double fraction : {0.0, 0.5, 1.0}) {  // what has only begun is no step
    step.fraction = fraction;
    metrics.take(step);
  }
  BOOST_TEST(has_line(text_of(metrics), "heddle_node_steps_total{class_type=\"A\"} 2"));
  metrics.job_ended(JobState::failed, 1, "out_of_memory");
  metrics.job_ended(JobState::done, 1, "");
  metrics.answered(404);
  const std::string text = text_of(metrics);
  for (const char* line :
       {"heddle_node_seconds_total{class_type=\"A\"} 0.75",
        "heddle_node_runs_total{class_type=\"A\"} 2",
        "heddle_node_cache_hits_total{class_type=\"A\"} 1",
        "heddle_jobs_ended_total{state=\"done\"} 1", "heddle_jobs_ended_total{state=\"failed\"} 1",
        "heddle_jobs_ended_total{state=\"cancelled\"} 0",
        "heddle_job_errors_total{code=\"out_of_memory\"} 1",
        "heddle_http_responses_total{code=\"404\"} 1", "heddle_job_run_seconds_count 2"})
    BOOST_TEST(has_line(text, line), line);
  BOOST_TEST(text.find("\"B\"") == std::string::npos);
}

// Every line is what the format says, and every family is there once, before its samples.
BOOST_FIXTURE_TEST_CASE(what_is_served_can_be_read, V1Serving) {
  const std::string done = submit_v1(showing(1)), failed = submit_v1(failing("broken"));
  wait_for(done, "done");
  wait_for(failed, "failed");
  wait_until([&] { return has_line(get("/metrics").body, "heddle_job_run_seconds_count 2"); });
  expect(200, "POST", "/v1/queue/pause");
  submit_v1(showing(2));
  for (const char* target : {"/v1/metrics", "/metrics"}) {
    const Reply reply = get(target);
    BOOST_TEST(reply.status == 200);
    BOOST_TEST(reply.header("content-type") == "text/plain; version=0.0.4; charset=utf-8");
    static const std::regex about("# (HELP|TYPE) (heddle_[a-z_]+) .+"),
        sample(
            "(heddle_[a-z_]+?)(_bucket|_sum|_count)?(\\{([a-z_]+=\"[^\"]*\",?)+\\})? [0-9.e+-]+");
    std::set<std::string> families;
    std::istringstream lines(reply.body);
    std::string family;
    for (std::string line; std::getline(lines, line);) {
      std::smatch match;
      if (std::regex_match(line, match, about)) {
        family = match[2];
        if (match[1] == "HELP") BOOST_TEST(families.insert(family).second, family);
        continue;
      }
      BOOST_TEST_REQUIRE(std::regex_match(line, match, sample), line);
      BOOST_TEST(match[1] == family, line);
    }
    for (const char* line :
         {"heddle_jobs{state=\"pending\"} 1", "heddle_jobs{state=\"running\"} 0",
          "heddle_queue_paused 1", "heddle_jobs_ended_total{state=\"done\"} 1",
          "heddle_jobs_ended_total{state=\"failed\"} 1", "heddle_job_run_seconds_count 2",
          "heddle_node_runs_total{class_type=\"t.Show\"} 1"})
      BOOST_TEST(has_line(reply.body, line), line);
    const std::string device = engine.devices().front().id;
    for (const char* what : {"weights without use", "cached values"})
      for (const std::string& memory : {device, std::string("host")})
        BOOST_TEST(has_line(reply.body, cat("heddle_evictions_total{device=\"", memory,
                                            "\",what=\"", what, "\"} 0")));
    BOOST_TEST(has_line(reply.body, "heddle_file_read_bytes_total{read=\"first\"} 0"));
    BOOST_TEST(has_line(reply.body, cat("heddle_device_up{device=\"", device, "\"} 1")));
  }
}

// Every query asks for metrics and labels that there are, and every metric is on the board.
BOOST_FIXTURE_TEST_CASE(the_board_asks_for_what_there_is, V1Serving) {
  wait_for(submit_v1(failing("broken")), "failed");
  wait_until([&] { return has_line(get("/metrics").body, "heddle_job_run_seconds_count 1"); });
  static const std::regex line_of("(heddle_[a-z_]+)(?:\\{(.*)\\})? .*"), label_of("([a-z_]+)=\""),
      name_of("heddle_[a-z_]+"), grouping("by \\(([a-z_, ]+)\\)"), word("[a-z_]+");
  std::map<std::string, std::set<std::string>> labels;  // by metric
  std::istringstream lines(get("/metrics").body);
  for (std::string line; std::getline(lines, line);) {
    std::smatch match;
    if (!std::regex_match(line, match, line_of)) continue;
    std::set<std::string>& known = labels[match[1]];
    const std::string text = match[2];
    for (std::sregex_iterator at(text.begin(), text.end(), label_of), end; at != end; ++at)
      known.insert((*at)[1]);
  }
  std::ifstream file(HEDDLE_SOURCE_DIR "/sdk/serve/grafana.json");
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const engine::Json board = engine::parse_json(text, "grafana.json");
  std::set<std::string> asked;
  std::size_t queries = 0;
  for (const engine::Json& panel : board.at("panels").as_array())
    for (const engine::Json& target : panel.at("targets").as_array()) {
      const std::string& query = target.at("expr").as_string();
      ++queries;
      std::set<std::string> there;  // labels of what it asks for
      for (std::sregex_iterator at(query.begin(), query.end(), name_of), end; at != end; ++at) {
        const std::string name = (*at)[0];
        BOOST_TEST(labels.contains(name), query);
        asked.insert(name);
        there.insert(labels[name].begin(), labels[name].end());
      }
      for (std::sregex_iterator at(query.begin(), query.end(), grouping), end; at != end; ++at) {
        const std::string list = (*at)[1];
        for (std::sregex_iterator one(list.begin(), list.end(), word); one != end; ++one)
          BOOST_TEST(there.contains((*one)[0]), query << ": " << (*one)[0]);
      }
    }
  BOOST_TEST(queries >= 15u);
  for (const auto& [name, of] : labels) {
    const bool is_told_otherwise =
        name == "heddle_build_info" || name.ends_with("_sum") || name.ends_with("_count");
    BOOST_TEST((is_told_otherwise || asked.contains(name)), name);
  }
}

BOOST_AUTO_TEST_SUITE_END()
