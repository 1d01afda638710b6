#include "engine/plugin/loader.h"

#include <link.h>
#include <sys/stat.h>

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstring>
#include <fstream>
#include <iterator>
#include <set>

#include "engine/base/log.h"
#include "engine/plugin/host.h"
#include "tests/support/temporary_folder.h"

namespace fs = std::filesystem;
using heddle::engine::load_plugins;
using heddle::engine::LoadedPlugins;

namespace {

const fs::path kSamples = HEDDLE_SAMPLE_PLUGINS_DIR;

std::string reason_for(const fs::path& file) {
  const LoadedPlugins loaded = load_plugins({file});
  BOOST_TEST_REQUIRE(loaded.refused.size() == 1u);
  BOOST_TEST(loaded.plugins.empty());
  return loaded.refused[0].reason;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// What is logged while these are loaded, none of which is refused: a line each.
std::vector<std::string> said_of(const std::vector<fs::path>& files) {
  std::vector<std::string> said;
  heddle::engine::set_log_sink([&](heddle::engine::Level level, std::string_view message) {
    said.push_back(std::string(heddle::engine::level_name(level)) + ": " + std::string(message));
  });
  const LoadedPlugins loaded = load_plugins(files);
  heddle::engine::set_log_sink({});
  BOOST_TEST(loaded.refused.empty());
  BOOST_TEST(loaded.plugins.size() == files.size());
  return said;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(loader)

BOOST_AUTO_TEST_CASE(a_folder_of_plugins_fills_the_catalog) {
  const LoadedPlugins loaded = load_plugins({kSamples});
  BOOST_TEST(loaded.refused.empty());
  BOOST_TEST(loaded.plugins.size() >= 3u);
  BOOST_TEST((loaded.catalog->find("demo.hello") != nullptr));
  BOOST_TEST((loaded.catalog->find("demo.count_bytes") != nullptr));
  BOOST_TEST(loaded.catalog->find("demo.hello")->plugin() == "org.example.hello");
  BOOST_TEST(std::ranges::any_of(loaded.catalog->families(), [](const auto& f) {
    return std::string_view(f.desc->family) == "test.layers";
  }));
}

BOOST_AUTO_TEST_CASE(loading_twice_shares_the_plugin) {
  const LoadedPlugins first = load_plugins({kSamples}), second = load_plugins({kSamples});
  BOOST_TEST((first.plugins[0] == second.plugins[0]));
}

BOOST_AUTO_TEST_CASE(a_later_file_of_a_plugin_stands_for_the_earlier_one) {
  const heddle::test::TemporaryFolder folder;
  const LoadedPlugins once = load_plugins({kSamples});
  const auto has_layers = [](const auto& family) {
    return std::string_view(family.desc->family) == "test.layers";
  };
  const auto layers = std::ranges::find_if(once.catalog->families(), has_layers);
  BOOST_TEST_REQUIRE((layers != once.catalog->families().end()));
  const auto found = std::ranges::find(once.plugins, layers->plugin, &heddle::engine::Plugin::id);
  const fs::path earlier = (*found)->path(), later = folder / "again.so";
  fs::copy_file(earlier, later);
  std::vector<std::string> said;
  heddle::engine::set_log_sink(
      [&](heddle::engine::Level, std::string_view message) { said.emplace_back(message); });
  const LoadedPlugins loaded = load_plugins({kSamples, later});
  heddle::engine::set_log_sink({});
  BOOST_TEST(loaded.plugins.size() == once.plugins.size());
  const auto number = found - once.plugins.begin();
  BOOST_TEST(loaded.plugins[std::size_t(number)]->path() == fs::canonical(later));
  BOOST_TEST(std::ranges::count_if(loaded.catalog->families(), has_layers) == 1);
  BOOST_TEST(loaded.catalog->type_names() == once.catalog->type_names(),
             boost::test_tools::per_element());
  BOOST_TEST(loaded.kernels->all().size() == once.kernels->all().size());
  BOOST_TEST(std::ranges::count(said, "plugin '" + layers->plugin +
                                          "': " + fs::canonical(later).string() +
                                          " is used instead of " + earlier.string()) == 1);
}

BOOST_AUTO_TEST_CASE(a_plugin_for_another_abi_is_refused_with_both_versions) {
  const std::string reason = reason_for(kSamples / "bad/bad_other_abi.so");
  BOOST_TEST(contains(reason, "built for version 7.3 of the plugin ABI"), reason);
  BOOST_TEST(contains(reason, "wants version 1.0"), reason);
}

BOOST_AUTO_TEST_CASE(a_plugin_of_an_earlier_sdk_is_refused_before_any_of_its_code_runs) {
  const fs::path file = kSamples / "bad/bad_old_abi.so";
  BOOST_TEST(reason_for(file) == fs::canonical(file).string() +
                                     " was built for version 0.1 of the plugin ABI; this engine "
                                     "(heddle 0.1.0) wants version 1.0. "
                                     "Build the plugin again with this engine's SDK");
}

BOOST_AUTO_TEST_CASE(a_plugin_of_a_newer_minor_version_is_refused_with_both_versions) {
  const std::string reason = reason_for(kSamples / "bad/bad_newer_minor.so");
  BOOST_TEST(contains(reason, "built for version 1.1 of the plugin ABI"), reason);
  BOOST_TEST(contains(reason, "wants version 1.0"), reason);
}

BOOST_AUTO_TEST_CASE(a_plugin_that_needs_a_service_which_is_not_there_is_refused_with_its_name) {
  const fs::path file = kSamples / "bad/bad_no_service.so";
  BOOST_TEST(reason_for(file) == fs::canonical(file).string() +
                                     ": init failed: this engine (heddle 0.1.0, ABI 1.0) has no "
                                     "service 'heddle.telepathy/3', which the "
                                     "plugin needs. Build the plugin again with this engine's SDK");
}

BOOST_AUTO_TEST_CASE(a_plugin_does_without_an_optional_service) {
  const LoadedPlugins loaded = load_plugins({kSamples / "bad/bad_optional_service.so"});
  BOOST_TEST(loaded.refused.empty());
  BOOST_TEST((loaded.catalog->find("test.guesser") != nullptr));
}

BOOST_AUTO_TEST_CASE(every_service_of_the_abi_is_found_by_its_name_and_nothing_else_is) {
  const heddle_host& host = *heddle::engine::plugin_host();
  std::set<const void*> tables;
  for (const char* name :
       {HEDDLE_SERVICE_VALUE,      HEDDLE_SERVICE_TENSOR,     HEDDLE_SERVICE_JSON,
        HEDDLE_SERVICE_IO,         HEDDLE_SERVICE_CALL,       HEDDLE_SERVICE_REPORT,
        HEDDLE_SERVICE_PREVIEW,    HEDDLE_SERVICE_OPS,        HEDDLE_SERVICE_BLOCK,
        HEDDLE_SERVICE_SESSION,    HEDDLE_SERVICE_COMPLETION, HEDDLE_SERVICE_FOLDERS,
        HEDDLE_SERVICE_FILES,      HEDDLE_SERVICE_INFER,      HEDDLE_SERVICE_COST,
        HEDDLE_SERVICE_VALIDATION, HEDDLE_SERVICE_CHECKPOINT, HEDDLE_SERVICE_GRAPH,
        HEDDLE_SERVICE_MODEL,      HEDDLE_SERVICE_REGISTRY}) {
    const void* table = host.service(&host, name);
    BOOST_TEST((table != nullptr), name);
    BOOST_TEST(tables.insert(table).second, name);
  }
  for (const char* name : {"heddle.exec/0", "heddle.io/1", "heddle.io", ""})
    BOOST_TEST((host.service(&host, name) == nullptr), name);
}

BOOST_AUTO_TEST_CASE(an_entry_without_provide_is_refused_with_that_name) {
  const std::string reason = reason_for(kSamples / "bad/bad_no_provide.so");
  BOOST_TEST(contains(reason, "its heddle_entry lacks 'provide', which every plugin needs"),
             reason);
}

BOOST_AUTO_TEST_CASE(a_model_family_that_lacks_a_required_function_is_refused_with_its_name) {
  BOOST_TEST(reason_for(kSamples / "bad/bad_bad_model.so") ==
             "plugin 'bad.model': the model family 'odd' lacks the function 'match'. Build the "
             "plugin again with this engine's SDK");
}

BOOST_AUTO_TEST_CASE(of_a_plugin_whose_device_is_refused_nothing_is_used) {
  const LoadedPlugins loaded = load_plugins({kSamples / "bad/bad_bad_device.so"});
  BOOST_TEST_REQUIRE(loaded.refused.size() == 1u);
  BOOST_TEST(loaded.refused[0].reason ==
             "plugin 'bad.device': the device kind 'bad' lacks the function 'count', which every "
             "device needs. "
             "Build the plugin again with this engine's SDK");
  BOOST_TEST(loaded.devices.empty());
  BOOST_TEST((loaded.catalog->find("bad.beside") == nullptr));
}

BOOST_AUTO_TEST_CASE(a_failing_init_gives_its_reason) {
  const std::string reason = reason_for(kSamples / "bad/bad_init_fails.so");
  BOOST_TEST(contains(reason, "the moon is in the wrong phase"), reason);
}

BOOST_AUTO_TEST_CASE(an_init_that_throws_is_refused) {
  const std::string reason = reason_for(kSamples / "bad/bad_init_throws.so");
  BOOST_TEST(contains(reason, "init threw 'boom'"), reason);
}

BOOST_AUTO_TEST_CASE(a_library_without_an_entry_is_no_plugin) {
  BOOST_TEST(contains(reason_for(kSamples / "bad/bad_no_entry.so"), "exports no heddle_entry"));
}

BOOST_AUTO_TEST_CASE(an_undefined_symbol_is_named) {
  BOOST_TEST(contains(reason_for(kSamples / "bad/bad_undefined.so"), "a_function_nobody_has"));
}

BOOST_AUTO_TEST_CASE(an_entry_of_an_impossible_size_is_refused) {
  BOOST_TEST(contains(reason_for(kSamples / "bad/bad_small.so"), "impossible size 4"));
}

BOOST_AUTO_TEST_CASE(a_node_without_a_type_is_refused) {
  const std::string reason = reason_for(kSamples / "bad/bad_bad_node.so");
  BOOST_TEST(contains(reason, "bad.node"), reason);
}

BOOST_AUTO_TEST_CASE(a_plugin_that_brings_a_class_twice_is_refused_with_the_name) {
  BOOST_TEST(reason_for(kSamples / "bad/bad_twice.so") ==
             "plugin 'bad.twice' brings the node type 'bad.twin' twice. Rename one of them");
}

BOOST_AUTO_TEST_CASE(defaults_that_their_own_inputs_do_not_take_are_told) {
  const std::string where = "warning: plugin 'bad.defaults', node type 'bad.beyond': input ";
  const std::string end = " A workflow has to give a value";
  BOOST_TEST(said_of({kSamples / "bad/bad_defaults.so"}) ==
                 (std::vector<std::string>{
                     where +
                         "'steps' does not take its own default: 200 is above the greatest "
                         "value 100. Give a number from 1 to 100." +
                         end,
                     where +
                         "'scale' does not take its own default: -0.5 is below the least "
                         "value 0. Give a number from 0 to 1." +
                         end,
                     where +
                         "'method' does not take its own default: 'best' is not one of the "
                         "choices. Choices: 'good', 'better'." +
                         end}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_plugin_whose_kernels_stand_beside_those_of_another_is_told) {
  const fs::path cpu = fs::path(HEDDLE_PLUGINS_DIR) / "cpu.so",
                 other = kSamples / "bad/bad_takes_over.so";
  BOOST_TEST(said_of({cpu, other}) ==
                 (std::vector<std::string>{
                     "info: plugin 'bad.takes_over' has kernels for cpu beside those of plugin "
                     "'org.heddle.cpu': fill/1. Of each call that one runs it that says it fits "
                     "better"}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_text_file_is_no_plugin) {
  const heddle::test::TemporaryFolder folder;
  std::ofstream(folder.path() / "text.so") << "not a library";
  BOOST_TEST(contains(reason_for(folder.path() / "text.so"), "cannot be loaded as a plugin"));
}

namespace {

std::string content_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Where what the loader maps of it ends.
std::size_t end_of_segments(const std::string& object) {
  ElfW(Ehdr) header;
  std::memcpy(&header, object.data(), sizeof header);
  std::size_t end = 0;
  for (std::size_t i = 0; i < header.e_phnum; ++i) {
    ElfW(Phdr) segment;
    std::memcpy(&segment, object.data() + header.e_phoff + i * sizeof segment, sizeof segment);
    if (segment.p_type == PT_LOAD)
      end = std::max(end, std::size_t(segment.p_offset + segment.p_filesz));
  }
  return end;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_plugin_that_is_cut_off_is_refused_before_anything_is_mapped) {
  const heddle::test::TemporaryFolder folder;
  const std::string whole = content_of(kSamples / "sample_hello.so");
  const std::size_t end = end_of_segments(whole);
  for (const std::size_t size : {std::size_t{0}, std::size_t{3}, std::size_t{40}, std::size_t{64},
                                 std::size_t{200}, end / 4, end / 2, end - 1}) {
    const std::string reason = reason_for(folder.write("cut.so", whole.substr(0, size)));
    BOOST_TEST(contains(reason, "cannot be loaded as a plugin"), reason);
    if (size >= 4)
      BOOST_TEST(contains(reason, "the file is cut off: it has " + std::to_string(size) + " bytes"),
                 reason);
  }
}

BOOST_AUTO_TEST_CASE(what_is_no_shared_object_of_this_machine_is_told_so) {
  const heddle::test::TemporaryFolder folder;
  std::string other = content_of(kSamples / "sample_hello.so");
  other[offsetof(ElfW(Ehdr), e_machine)] = 8;  // MIPS
  other[offsetof(ElfW(Ehdr), e_machine) + 1] = 0;
  BOOST_TEST(contains(reason_for(folder.write("other.so", other)), "another machine"));
  std::string object = content_of(kSamples / "sample_hello.so");
  object[offsetof(ElfW(Ehdr), e_type)] = ET_REL;
  BOOST_TEST(contains(reason_for(folder.write("object.so", object)), "-shared"));
}

BOOST_AUTO_TEST_CASE(a_pipe_and_a_folder_that_are_named_like_plugins_are_refused_without_waiting) {
  const heddle::test::TemporaryFolder folder;
  BOOST_REQUIRE(::mkfifo((folder / "a.so").c_str(), 0600) == 0);
  fs::create_directory(folder / "b.so");
  fs::copy_file(kSamples / "sample_hello.so", folder / "c.so");
  const LoadedPlugins loaded = load_plugins({folder.path()});
  BOOST_TEST_REQUIRE(loaded.refused.size() == 2u);
  BOOST_TEST(contains(loaded.refused[0].reason, "a pipe"), loaded.refused[0].reason);
  BOOST_TEST(contains(loaded.refused[1].reason, "a folder"), loaded.refused[1].reason);
  BOOST_TEST(loaded.plugins.size() == 1u);
}

BOOST_AUTO_TEST_CASE(a_folder_that_is_not_there_is_refused_like_a_plugin) {
  BOOST_TEST(contains(reason_for("/nowhere/at/all"), "cannot be read"));
}

BOOST_AUTO_TEST_SUITE_END()
