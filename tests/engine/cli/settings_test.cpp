#include "engine/cli/settings.h"

#include <boost/test/unit_test.hpp>

#include "tests/support/refusal.h"
#include "tests/support/temporary_folder.h"

namespace heddle::cli {
BOOST_AUTO_TEST_SUITE(settings)

namespace {

Layer given(std::initializer_list<std::pair<std::string_view, std::string>> options) {
  Layer layer;
  for (const auto& [name, value] : options)
    layer.add(*find_option(name), {value, Origin::command_line, "--" + std::string(name)});
  return layer;
}

std::string refusal(std::string_view option, const std::string& value) {
  const engine::Error error = test::refusal_of([&] { read_settings(given({{option, value}})); });
  BOOST_TEST((error.code() == engine::Code::invalid_argument));
  return error.what();
}

BOOST_AUTO_TEST_CASE(nothing_given_leaves_the_defaults_of_the_engine) {
  const Settings settings = read_settings({});
  BOOST_TEST(settings.engine.threads == 0u);
  BOOST_TEST(settings.engine.input_dir.empty());
  BOOST_TEST(settings.engine.output_dir.empty());
  BOOST_TEST(settings.engine.comfyui_dir.empty());
  BOOST_TEST(!settings.json);
  BOOST_TEST(!settings.log_level.has_value());
  BOOST_TEST(settings.sets.empty());
}

BOOST_AUTO_TEST_CASE(values_are_read_into_their_types) {
  const test::TemporaryFolder folder;
  const Settings settings = read_settings(given({{"threads", "3"},
                                                 {"devices", "cpu:0,cpu:1"},
                                                 {"compute", "cpu=bf16"},
                                                 {"attention-dtype", "fp8_e4m3fn"},
                                                 {"linear-dtype", "int8"},
                                                 {"models", folder.path().string()},
                                                 {"output", "pictures"},
                                                 {"json", "true"},
                                                 {"options", R"(cpu={"threads": 2})"},
                                                 {"set", "text.text=a=b"},
                                                 {"place", "a node=cpu:0,cpu:1"},
                                                 {"parallel", "a node=layers"},
                                                 {"only", "save,the end"},
                                                 {"fidelity", "rounding"},
                                                 {"log-level", "warning"},
                                                 {"costs", "costs.json"}}));
  BOOST_TEST(settings.engine.threads == 3u);
  BOOST_TEST(settings.engine.devices == (std::vector<std::string>{"cpu:0", "cpu:1"}));
  BOOST_TEST(settings.engine.compute.at("cpu") == "bf16");
  BOOST_TEST(settings.engine.attention_dtype == "fp8_e4m3fn");
  BOOST_TEST(settings.engine.linear_dtype == "int8");
  BOOST_TEST(settings.engine.device_options.at("cpu") == R"({"threads": 2})");
  BOOST_TEST(settings.engine.model_dirs.at(0) == folder.path());
  BOOST_TEST(settings.engine.output_dir == "pictures");
  BOOST_TEST(settings.json);
  BOOST_TEST(settings.sets.at(0).key == "text.text");
  BOOST_TEST(settings.sets.at(0).value == "a=b");
  BOOST_TEST(settings.places.at(0).key == "a node");
  BOOST_TEST(settings.places.at(0).value == "cpu:0,cpu:1");
  BOOST_TEST(settings.parallel.at(0).value == "layers");
  BOOST_REQUIRE_EQUAL(settings.only.size(), 2u);
  BOOST_TEST(settings.only[1].text == "the end");
  BOOST_TEST(settings.only[1].where == "--only");
  BOOST_TEST((settings.engine.fidelity == heddle::Fidelity::rounding));
  BOOST_TEST(settings.costs_file == "costs.json");
  BOOST_TEST((settings.log_level == engine::Level::warning));
}

BOOST_AUTO_TEST_CASE(a_server_listens_for_this_machine_unless_told_otherwise) {
  const ServeSettings usual = read_settings({}).serve;
  BOOST_TEST(usual.addresses == std::vector<std::string>{"127.0.0.1"});
  BOOST_TEST(usual.port == 8188);
  BOOST_TEST(usual.jobs == 4u);
  BOOST_TEST(!usual.insecure);
  BOOST_TEST(usual.api_key.empty());
  const ServeSettings serve = read_settings(given({{"listen", "0.0.0.0,::"},
                                                   {"port", "80"},
                                                   {"jobs", "2"},
                                                   {"api-key", "k"},
                                                   {"front-end", "pip"},
                                                   {"queue", "q.db"},
                                                   {"user", "u"},
                                                   {"enable-cors-header", "https://a.example"},
                                                   {"multi-user", "true"},
                                                   {"interrupted", "fail"},
                                                   {"preview-method", "taesd"},
                                                   {"shutdown-seconds", "3"},
                                                   {"keep-temp-days", "2"},
                                                   {"keep-output-size", "20GiB"},
                                                   {"keep-free", "1GiB"},
                                                   {"insecure", "true"}}))
                                  .serve;
  BOOST_TEST(serve.addresses == (std::vector<std::string>{"0.0.0.0", "::"}));
  BOOST_TEST(serve.port == 80);
  BOOST_TEST(serve.jobs == 2u);
  BOOST_TEST(serve.api_key + serve.front_end == "kpip");
  BOOST_TEST(serve.queue == "q.db");
  BOOST_TEST(serve.user == "u");
  BOOST_TEST(serve.insecure);
  BOOST_TEST(serve.multi_user);
  BOOST_TEST((serve.interrupted == ServeSettings::Interrupted::fail));
  BOOST_TEST((usual.interrupted == ServeSettings::Interrupted::resume));
  BOOST_TEST((serve.previews == heddle::PreviewMethod::taesd));
  BOOST_TEST((usual.previews == heddle::PreviewMethod::linear));
  BOOST_TEST(refusal("preview-method", "jpeg").find("auto or taesd, got 'jpeg'") !=
             std::string::npos);
  BOOST_TEST(serve.shutdown_seconds == 3u);
  BOOST_TEST((serve.keep.temp_days == 2u && serve.keep.output_bytes == 20ull << 30));
  BOOST_TEST((!serve.keep.output_days && !serve.keep.temp_bytes && !serve.keep.history_days));
  BOOST_TEST(serve.keep.free_bytes == 1u << 30);
  BOOST_TEST(usual.keep.free_bytes == 0u);
  BOOST_TEST(refusal("keep-free", "10%").find("such as 20GiB") != std::string::npos);
  BOOST_TEST(refusal("keep-temp-days", "x").find("days up to") != std::string::npos);
  BOOST_TEST(refusal("interrupted", "no").find("resume, again or fail") != std::string::npos);
  BOOST_TEST(serve.cors_origin == "https://a.example");
  BOOST_TEST(read_settings(given({{"enable-cors-header", "*"}})).serve.cors_origin == "*");
  BOOST_TEST(refusal("enable-cors-header", "a.example").find("an origin") != std::string::npos);
  BOOST_TEST(refusal("port", "65536").find("a port from 0 to 65535") != std::string::npos);
  BOOST_TEST(refusal("jobs", "0").find("from 1 to 256") != std::string::npos);
  BOOST_TEST(refusal("api-key", "").find("an empty one") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_server_is_asked_at_its_address_with_its_key) {
  const ServerSettings usual = read_settings({}).server;
  BOOST_TEST(usual.url == "http://127.0.0.1:8188");
  BOOST_TEST(!usual.is_given);
  const ServerSettings server =
      read_settings(given({{"server", "https://gpu.example/"}, {"api-key", "k"}})).server;
  BOOST_TEST(server.url == "https://gpu.example");
  BOOST_TEST(server.api_key == "k");
  BOOST_TEST(server.is_given);
  BOOST_TEST(read_settings(given({{"server", "gpu:8188"}})).server.url == "http://gpu:8188");
  BOOST_TEST(refusal("server", "").find("an empty one") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(jobs_have_a_priority_a_tag_and_a_number) {
  const JobSettings usual = read_settings({}).job;
  BOOST_TEST(!usual.priority.has_value());
  BOOST_TEST(usual.repeats == 1u);
  const JobSettings job = read_settings(given({{"priority", "-3"},
                                               {"tag", "t"},
                                               {"batch", "b"},
                                               {"repeats", "4"},
                                               {"wait", "true"}}))
                              .job;
  BOOST_TEST(job.priority.value() == -3);
  BOOST_TEST(job.tag + job.batch == "tb");
  BOOST_TEST(job.repeats == 4u);
  BOOST_TEST(job.wait);
  BOOST_TEST(!job.front);
  for (const char* bad : {"x", "", "1.5", "1 "})
    BOOST_TEST(refusal("priority", bad).find("a whole number") != std::string::npos);
  for (const char* bad : {"0", "1001", "-1"})
    BOOST_TEST(refusal("repeats", bad).find("from 1 to 1000") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(an_assignment_may_be_of_an_empty_text_but_a_node_goes_to_a_device) {
  BOOST_TEST(read_settings(given({{"set", "text.text="}})).sets.at(0).value == "");
  BOOST_TEST(refusal("place", "node=") == "--place: expected NODE=DEVICE, got 'node='.");
  BOOST_TEST(refusal("set", "text.text") == "--set: expected NODE.INPUT=VALUE, got 'text.text'.");
  BOOST_TEST(refusal("set", "=5").find("expected NODE.INPUT=VALUE") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(wrong_values_are_refused_with_the_option) {
  for (const char* threads : {"x", "-1", "1.5", "", "4097", "99999999999", "2 "})
    BOOST_TEST(refusal("threads", threads).find("--threads: expected a number of threads") == 0u);
  BOOST_TEST(refusal("compute", "cpu=fp32").find("Did you mean 'f32'") != std::string::npos);
  BOOST_TEST(refusal("attention-dtype", "fp8_e4m3") ==
             "--attention-dtype: expected default or fp8_e4m3fn, got 'fp8_e4m3'. Did you mean "
             "'fp8_e4m3fn'?");
  BOOST_TEST(refusal("linear-dtype", "int4").find("expected default or int8, got 'int4'") !=
             std::string::npos);
  BOOST_TEST(refusal("devices", "cpu,,cuda").find("names with commas") != std::string::npos);
  BOOST_TEST(refusal("models", "/no/such/folder") ==
             "--models: there is no folder '/no/such/folder'.");
  BOOST_TEST(refusal("output", "").find("expected a path") != std::string::npos);
  BOOST_TEST(refusal("fidelity", "roundin") ==
             "--fidelity: expected exact or rounding, got 'roundin'. Did you mean 'rounding'?");
  BOOST_TEST(refusal("log-level", "warnin") ==
             "--log-level: expected debug, info, warning or error, got 'warnin'. Did you mean "
             "'warning'?");
  BOOST_TEST(refusal("json", "perhaps").find("expected true or false") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(files_to_write_need_a_folder_that_is_there) {
  const test::TemporaryFolder folder;
  const Settings settings =
      read_settings(given({{"trace", (folder / "t.json").string()}, {"svg", "p.svg"}}));
  BOOST_TEST(settings.trace == folder / "t.json");
  BOOST_TEST(settings.svg == "p.svg");
  for (const char* option : {"trace", "svg"}) {
    BOOST_TEST(refusal(option, "/no/such/folder/t.json") ==
               std::string("--") + option +
                   ": there is no folder '/no/such/folder' to write the file into.");
    BOOST_TEST(refusal(option, folder.path().string()).find("is a folder; name a file in it") !=
               std::string::npos);
  }
}

BOOST_AUTO_TEST_CASE(several_runs_number_their_files_before_the_extension) {
  BOOST_TEST(numbered("t.json", 1, 1) == "t.json");
  BOOST_TEST(numbered("a.b/t.json", 2, 3) == "a.b/t.2.json");
  BOOST_TEST(numbered("t", 12, 12) == "t.12");
  BOOST_TEST(numbered("", 2, 3) == "");
  BOOST_TEST(numbered("/dev/null", 2, 3) == "/dev/null");
}

BOOST_AUTO_TEST_CASE(sizes_of_memory_are_bytes_with_a_unit_or_a_share) {
  const Settings settings = read_settings(given({{"budget", "cuda:0=14GiB"},
                                                 {"reserve", "cuda=12.5%"},
                                                 {"host-budget", "60%"},
                                                 {"pinned", "0"}}));
  BOOST_TEST(settings.engine.budgets.at("cuda:0").bytes == std::uint64_t{14} << 30);
  BOOST_TEST(settings.engine.reserves.at("cuda").share == 0.125);
  BOOST_TEST(settings.engine.host_budget.value().share == 0.6);
  BOOST_TEST(settings.engine.pinned.value().bytes == 0u);
  BOOST_TEST(!read_settings({}).engine.host_budget.has_value());
  for (const char* size : {"cuda=much", "cuda=-1", "cuda=101%", "cuda=0%", "cuda=%"})
    BOOST_TEST(refusal("budget", size).find("--budget: expected a size such as 14GiB") == 0u);
  BOOST_TEST(refusal("budget", "14GiB") == "--budget: expected DEVICE=SIZE, got '14GiB'.");
  BOOST_TEST(refusal("budget", "cuda=0").find("nothing can run in no memory") != std::string::npos);
  BOOST_TEST(refusal("host-budget", "0GiB").find("nothing can run in no memory") !=
             std::string::npos);
  BOOST_TEST(environment_name(*find_option("host-budget")) == "HEDDLE_HOST_BUDGET");
}

BOOST_AUTO_TEST_CASE(what_stands_higher_says_of_a_kind_counts_for_its_devices) {
  Layer layer;
  const auto add = [&](const char* text, Origin origin) {
    layer.add(*find_option("budget"), {text, origin, "there"});
  };
  add("cuda:0=1GiB", Origin::configuration);
  add("cpu=2GiB", Origin::configuration);
  add("cuda=3GiB", Origin::environment);
  add("cuda:1=4GiB", Origin::environment);
  const Settings settings = read_settings(layer);
  BOOST_TEST(settings.engine.budgets.size() == 3u);
  BOOST_TEST(settings.engine.budgets.at("cuda").bytes == std::uint64_t{3} << 30);
  BOOST_TEST(settings.engine.budgets.at("cuda:1").bytes == std::uint64_t{4} << 30);
  BOOST_TEST(settings.configured_budgets == std::set<std::string>{"cpu"});
}

BOOST_AUTO_TEST_CASE(a_workflow_gives_budgets_before_a_configuration_file_and_after_all_else) {
  const auto budgets = [](Origin origin, const std::string& text,
                          const std::map<std::string, std::uint64_t>& given) {
    Layer layer;
    layer.add(*find_option("budget"), {text, origin, "there"});
    Settings settings = read_settings(layer);
    prefer_workflow_budgets(settings, given);
    std::map<std::string, std::uint64_t> bytes;
    for (const auto& [device, size] : settings.engine.budgets) bytes[device] = size.bytes;
    return bytes;
  };
  using Bytes = std::map<std::string, std::uint64_t>;
  const Bytes workflow{{"cpu:0", 1 << 20}, {"cpu:2", 5}};
  BOOST_TEST((budgets(Origin::configuration, "cpu:0=3", workflow) == Bytes{{"cpu:0", 1 << 20}}));
  BOOST_TEST((budgets(Origin::configuration, "cpu=3", workflow) ==
              Bytes{{"cpu", 3}, {"cpu:0", 1 << 20}, {"cpu:2", 5}}));
  BOOST_TEST((budgets(Origin::configuration, "gpu:1=3", workflow) == Bytes{{"gpu:1", 3}}));
  for (const Origin origin : {Origin::command_line, Origin::environment})
    for (const char* text : {"cpu:0=3", "cpu=3"})
      BOOST_TEST(budgets(origin, text, workflow).size() == 1u);
  BOOST_TEST((budgets(Origin::configuration, "cpu:0=3", {}) == Bytes{{"cpu:0", 3}}));
}

BOOST_AUTO_TEST_CASE(a_cache_is_a_folder_or_none_and_has_a_limit) {
  BOOST_TEST(!read_settings(given({})).cache);
  BOOST_TEST(*read_settings(given({{"cache", "c"}})).cache == "c");
  BOOST_TEST(read_settings(given({{"cache", ""}})).cache->empty());
  BOOST_TEST(read_settings(given({{"cache", "none"}})).cache->empty());
  BOOST_TEST(read_settings(given({{"cache-limit", "2MiB"}})).engine.cache_dir_bytes == 2u << 20);
  BOOST_TEST(read_settings(given({})).engine.prompt_limit == 64u << 10);
  BOOST_TEST(read_settings(given({{"prompt-limit", "2MiB"}})).engine.prompt_limit == 2u << 20);
  BOOST_TEST(refusal("prompt-limit", "long").find("expected a size such as 1GiB, got 'long'") !=
             std::string::npos);
  BOOST_TEST(refusal("cache-limit", "much").find("expected a size such as 1GiB, got 'much'") !=
             std::string::npos);
}

BOOST_AUTO_TEST_CASE(isolated_plugins_and_their_limits) {
  BOOST_TEST(read_settings(given({})).engine.isolation.plugins.empty());
  const Isolation isolation = read_settings(given({{"isolate", "a,b.so"},
                                                   {"isolate-timeout", "30"},
                                                   {"isolate-memory", "2GiB"},
                                                   {"isolate-sandbox", "true"}}))
                                  .engine.isolation;
  BOOST_TEST((isolation.plugins == std::vector<std::string>{"a", "b.so"}));
  BOOST_TEST(isolation.call_seconds == 30);
  BOOST_TEST(isolation.memory_bytes == std::uint64_t{2} << 30);
  BOOST_TEST(isolation.sandbox);
  const Isolation python =
      read_settings(given({{"python-nodes", "/tmp"}, {"python", "/bin/sh"}})).engine.isolation;
  BOOST_TEST((python.python_nodes == std::vector<std::filesystem::path>{"/tmp"}));
  BOOST_TEST(python.python == "/bin/sh");
  BOOST_TEST(refusal("python-nodes", "/nowhere").find("there is no folder '/nowhere'") !=
             std::string::npos);
  BOOST_TEST(refusal("isolate-timeout", "soon").find("seconds up to") != std::string::npos);
  BOOST_TEST(refusal("isolate-memory", "some").find("expected a size such as 1GiB, got 'some'") !=
             std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace heddle::cli
