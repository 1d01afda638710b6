// The execution suite: each rule of how graphs run has a graph here, with what has to run, be
// cached, be blocked or fail. The tables are JSON, a file for each subject:
//
//   {"rule": ..., "graph": {the workflow}, "runs": [expected, ...]}
//
// Every graph runs as often as "runs" has entries, one after another in one engine. Of a case:
//   "on"       "one": on one device alone, where the order matters
//   "cache"    bytes of the output cache
// Of a run:
//   "graph"    another workflow from then on
//   "set"      {"NODE.INPUT": value}: changed before this run, and from then on
//   "cancel"   an id: the run is cancelled when this node is called
//   "ran"      the calls of nodes, by id, in order; "3*4" is four calls of 3
//   "counts"   how many calls, where "ran" would be too long
//   "asked"    ids of nodes whose change detectors were asked, in order
//   "cached"   ids of nodes whose outputs were there already, sorted
//   "blocked"  {id: messages of blockers that it has met}
//   "shows"    {id: what it shows as text}
//   "fails"    the run's error, whole; else it succeeds
//   "refused"  {id: errors before anything runs, "type | details", of a node, or of "": all}; what
//              the run then says is told by "fails", or by nothing
//   "anew"     nothing is taken from the cache
//   "partly"   the outputs that are right run all the same
//   "only"     ids of the output nodes to run for, from then on; none: all
//   "display"  {id: the id that stands for it}, of nodes that came while the run was under way
// Each graph runs on one device; on several, where calls may come in another order; and with the
// suite's plugin in workers, which makes no difference.
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <fstream>
#include <future>
#include <mutex>
#include <sstream>

#include "engine/base/json.h"
#include "engine/base/text.h"
#include "tests/fake_device/fake_fixture.h"

using namespace heddle;
using engine::cat;
using engine::Json;

namespace {

struct Trace {
  std::vector<std::string> ran, asked, cached;
  std::map<std::string, std::vector<std::string>> blocked;
  std::map<std::string, std::string> display;
  std::map<std::string, std::vector<std::string>> refused;
  std::string error;
  Json shown = Json::object();
};

std::vector<std::string> words(std::string_view text) {
  std::istringstream in{std::string(text)};
  std::vector<std::string> found;
  for (std::string word; in >> word;) {
    const std::size_t star = word.find('*');
    const int count = star == std::string::npos ? 1 : std::stoi(word.substr(star + 1));
    for (int i = 0; i < count; ++i) found.push_back(word.substr(0, star));
  }
  return found;
}

std::string sorted(std::vector<std::string> list) {
  std::ranges::sort(list);
  return engine::join(list, " ");
}

std::string text_of(const Json* json) { return json == nullptr ? "" : json->as_string(); }

Json table(const std::string& name) {
  const std::string path = cat(HEDDLE_TESTS_DIR "/execution/", name, ".json");
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return engine::parse_json(text.str(), path);
}

EngineOptions options_for(const Json& one, const std::string& devices) {
  EngineOptions options = test::fake_engine_options({"fake:0", "fake:1", "fake:2"});
  if (devices != "several") options.devices = {"cpu:0"};
  if (devices == "isolated") options.isolation.plugins = {"sample_execution"};
  options.plugin_dirs.push_back(HEDDLE_SAMPLE_PLUGINS_DIR "/execution");
  const Json* cache = one.find("cache");
  options.cache_bytes = cache == nullptr ? 64 << 20 : std::uint64_t(cache->as_int64());
  return options;
}

std::string error_text(const Json& error) {
  return cat(error.at("type").as_string(), " | ", error.at("details").as_string());
}

// As ComfyUI's server says it. That an output needs what is refused says nothing more.
std::map<std::string, std::vector<std::string>> refused_of(const Engine& engine,
                                                           const Workflow& flow) {
  std::map<std::string, std::vector<std::string>> refused;
  const Json answer = engine::parse_json(engine.check(flow).answer, "answer");
  if (const Json* all = answer.find("error");
      all != nullptr && all->at("type").as_string() != "prompt_outputs_failed_validation")
    refused[""].push_back(error_text(*all));
  for (const Json::Member& node : answer.at("node_errors").members())
    for (const Json& error : node.value.at("errors").as_array())
      refused[node.key].push_back(error_text(error));
  return refused;
}

Trace trace_of(Engine& engine, const Workflow& flow, const Json& asked) {
  Trace trace;
  trace.refused = refused_of(engine, flow);
  std::mutex mutex;
  const std::string cancel = text_of(asked.find("cancel"));
  std::promise<Run*> started;
  std::shared_future<Run*> run_to_cancel = started.get_future().share();
  const auto observer = [&](const Event& event) {
    const std::lock_guard lock(mutex);
    const std::string id(event.node);
    if (event.kind == Event::Kind::node_progress && event.text == "call") {
      trace.ran.push_back(id);
      if (id == cancel) run_to_cancel.get()->cancel();
    }
    if (event.kind == Event::Kind::node_progress && event.text == "fingerprint")
      trace.asked.push_back(id);
    if (event.display_node != event.node || !event.parent_node.empty())
      trace.display[id] = event.display_node;
    if (event.kind == Event::Kind::node_cached) trace.cached.push_back(id);
    if (event.kind == Event::Kind::node_blocked) trace.blocked[id].emplace_back(event.text);
  };
  try {
    StartOptions start;
    start.observer = observer;
    start.partly = asked.find("partly") != nullptr;
    start.anew = asked.find("anew") != nullptr;
    Run run = engine.start(flow, std::move(start));
    started.set_value(&run);
    const Results results = run.wait();
    trace.shown = engine::parse_json(results.ui(), "ui");
  } catch (const EngineError& error) {
    trace.error = error.what();
  }
  return trace;
}

void compare(const Json& expected, const Trace& trace, bool in_order, const std::string& what) {
  const auto equal = [&](const char* of, const std::string& got, const std::string& wanted) {
    BOOST_TEST((got == wanted), what << ", " << of << ": " << got << ", expected " << wanted);
  };
  const auto wanted = words(text_of(expected.find("ran")));
  if (const Json* count = expected.find("counts"))
    equal("counts", cat(trace.ran.size()), cat(count->as_int64()));
  else if (in_order)
    equal("ran", engine::join(trace.ran, " "), engine::join(wanted, " "));
  else
    equal("ran", sorted(trace.ran), sorted(wanted));
  equal("asked", engine::join(trace.asked, " "), text_of(expected.find("asked")));
  equal("cached", sorted(trace.cached), sorted(words(text_of(expected.find("cached")))));
  std::map<std::string, std::vector<std::string>> blocked;
  if (const Json* all = expected.find("blocked"))
    for (const Json::Member& member : all->members())
      for (const Json& message : member.value.as_array())
        blocked[member.key].push_back(message.as_string());
  BOOST_TEST((trace.blocked == blocked), what << ": blocked");
  if (const Json* all = expected.find("display"))
    for (const Json::Member& member : all->members()) {
      const auto found = trace.display.find(member.key);
      equal("display", found == trace.display.end() ? member.key : found->second,
            member.value.as_string());
    }
  std::map<std::string, std::vector<std::string>> refused;
  if (const Json* all = expected.find("refused"))
    for (const Json::Member& member : all->members())
      for (const Json& error : member.value.as_array())
        refused[member.key].push_back(error.as_string());
  BOOST_TEST((trace.refused == refused), what << ": refused");
  for (const auto& [id, errors] : trace.refused)
    if (trace.refused != refused)
      BOOST_TEST_MESSAGE("  got " << id << ": " << engine::join(errors, "; "));
  if (refused.empty() || expected.find("fails") != nullptr)
    equal("fails", trace.error, text_of(expected.find("fails")));
  else
    BOOST_TEST(trace.error.empty() == (expected.find("ran") != nullptr),
               what << ": " << trace.error);
  std::vector<std::string> shown, wanted_shows;
  for (const Json::Member& member : trace.shown.members())
    shown.push_back(cat(member.key, ": ", engine::write_json(member.value.at("text"))));
  if (const Json* all = expected.find("shows"))
    for (const Json::Member& member : all->members())
      wanted_shows.push_back(cat(member.key, ": ", engine::write_json(member.value)));
  if (trace.error.empty()) equal("shows", sorted(shown), sorted(wanted_shows));
}

void run_case(const Json& one, const std::string& devices) {
  const Json* const on = one.find("on");
  if (on != nullptr && (on->as_string() == "one") != (devices != "several")) return;
  Engine engine(options_for(one, devices));
  Workflow flow = engine.parse(engine::write_json(one.at("graph")), "case");
  std::size_t number = 0;
  for (const Json& expected : one.at("runs").as_array()) {
    const std::string what =
        cat(one.at("rule").as_string(), " [", devices, " device, run ", ++number, "]");
    if (const Json* other = expected.find("graph"))
      flow = engine.parse(engine::write_json(*other), "case");
    if (const Json* changes = expected.find("set"))
      for (const Json::Member& change : changes->members())
        flow.set(change.key, engine::write_json(change.value));
    if (const Json* only = expected.find("only")) {
      std::vector<std::string> ids;
      for (const Json& id : only->as_array()) ids.push_back(id.as_string());
      flow.only(ids);
    }
    compare(expected, trace_of(engine, flow, expected), devices == "one", what);
  }
}

const char* const kTables[] = {"blockers", "lists",      "lazy",  "caching", "inputs",  "expansion",
                               "loops",    "validators", "types", "running", "targets", "dynamic"};

}  // namespace

BOOST_AUTO_TEST_SUITE(execution_suite)

BOOST_DATA_TEST_CASE(each_rule_has_a_graph,
                     boost::unit_test::data::make(kTables) *
                         boost::unit_test::data::make({"one", "several", "isolated"}),
                     name, devices) {
  const Json cases = table(name);
  for (const Json& one : cases.as_array()) run_case(one, devices);
}

BOOST_AUTO_TEST_CASE(there_are_enough_of_them) {
  std::size_t count = 0;
  for (const char* name : kTables) count += table(name).size();
  BOOST_TEST(count >= 167u);
}

BOOST_AUTO_TEST_SUITE_END()
