// The rules of the house, checked on the tree itself: who includes whom, one door for each
// dependency, no file too long, no word of the field in the engine, no path of a machine.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>

#include "tests/house/sources.h"

namespace fs = std::filesystem;
using house::for_each_include;
using house::kRoot;
using house::place;
using house::SourceFile;
using house::sources;

namespace {

// What each floor of the engine may include of the others.
const std::map<std::string, std::set<std::string>> kFloors{
    {"base", {}},
    {"tensor", {"base"}},
    {"device", {"base", "tensor"}},
    {"files", {"base", "tensor"}},
    {"memory", {"base", "tensor", "device", "files"}},
    {"transfer", {"base", "tensor", "device", "files", "memory"}},
    {"graph", {"base", "tensor"}},
    {"program", {"base", "tensor", "device", "files", "memory", "graph"}},
    {"place", {"base", "tensor", "device", "files", "graph", "program"}},
    {"explain", {"base", "tensor", "graph", "program", "place"}},
    {"resources", {"base", "tensor", "device", "files", "memory", "graph", "program", "place"}},
    {"session",
     {"base", "tensor", "device", "files", "memory", "transfer", "graph", "program", "place",
      "resources"}},
    {"run",
     {"base", "tensor", "device", "files", "memory", "transfer", "graph", "program", "place",
      "explain", "resources", "session"}},
    {"plugin",
     {"base", "tensor", "device", "files", "memory", "transfer", "graph", "program", "resources",
      "session", "run"}},
    {"isolate", {"base", "tensor", "device", "memory", "resources", "run", "plugin"}},
    {"facade",
     {"base", "tensor", "device", "files", "memory", "transfer", "graph", "program", "place",
      "explain", "resources", "session", "run", "plugin", "isolate"}},
    {"queue", {"base"}},
    {"serve", {"base", "queue"}},
    {"cli", {"base", "queue", "serve"}},
};

// Which includes go through which door: a prefix of the included name, and where it may stand.
struct Door {
  std::string include;
  std::vector<std::string> places;
};
const std::vector<Door> kDoors{
    {"rapidjson/", {"engine/base/json.cpp"}},
    {"xxhash.h", {"engine/base/hash.cpp"}},
    {"boost/graph/", {"engine/graph/dag.cpp"}},
    {"boost/dll/", {"engine/plugin/library.cpp"}},
    {"boost/math/", {"plugins/samplers/noise_schedule.cpp"}},
    {"CLI/", {"engine/cli/", "engine/main.cpp"}},
    {"oneapi/dnnl/", {"plugins/cpu/"}},
    {"dnnl", {"plugins/cpu/"}},
    {"omp.h", {"plugins/cpu/"}},
    {"cuda", {"plugins/cuda/"}},
    {"cudnn", {"plugins/cuda/"}},
    {"cublas", {"plugins/cuda/"}},
    {"nccl", {"plugins/cuda/"}},
    {"png.h", {"plugins/image/"}},
    {"jpeglib.h", {"plugins/image/", "engine/serve/preview_image.cpp"}},
    {"libav", {"plugins/video/ffmpeg.h"}},
    {"libsw", {"plugins/video/ffmpeg.h"}},
    {"EGL/", {"plugins/shader/process/"}},
    {"GLES3/", {"plugins/shader/process/"}},
    {"heddle/bench.hpp", {"engine/facade/bench.cpp", "engine/cli/bench_command.cpp"}},
    {"boost/asio/",
     {"engine/serve/http_server.cpp", "engine/serve/http_server_parts.h",
      "engine/serve/http_connection.cpp", "engine/serve/http_stream.cpp",
      "engine/serve/server_stream.h", "engine/serve/server_stream.cpp",
      "engine/serve/web_socket.cpp", "engine/serve/frame_stream.cpp",
      "engine/serve/write_pacer.h"}},
    {"boost/beast/",
     {"engine/serve/http_server.cpp", "engine/serve/http_server_parts.h",
      "engine/serve/http_connection.cpp", "engine/serve/http_stream.cpp",
      "engine/serve/server_stream.h", "engine/serve/server_stream.cpp",
      "engine/serve/web_socket.cpp"}},
    {"openssl/", {"engine/serve/secret.cpp"}},
    {"sqlite3.h", {"engine/queue/database.cpp"}},
    {"oniguruma.h", {"plugins/encoders/tokenizer/regex.cpp", "plugins/core/regex.cpp"}},
    {"utf8proc.h", {"plugins/encoders/tokenizer/unicode.cpp"}},
};

}  // namespace

BOOST_AUTO_TEST_SUITE(house)

BOOST_AUTO_TEST_CASE(the_tree_is_where_the_test_looks) {
  BOOST_TEST(sources("engine").size() > 50u);
  BOOST_TEST(sources("plugins").size() > 20u);
  BOOST_TEST(sources("sdk").size() > 8u);
}

// A rule about what is not there says nothing, and forbids nothing.
BOOST_AUTO_TEST_CASE(the_rules_are_about_what_there_is) {
  std::set<std::string> floors, named;
  for (const SourceFile& file : sources("engine"))
    if (const fs::path folder = fs::path(file.path).parent_path(); folder != "engine")
      floors.insert(folder.filename());
  for (const auto& [floor, others] : kFloors) {
    named.insert(floor);
    for (const std::string& other : others)
      BOOST_TEST(kFloors.contains(other),
                 floor << " may include '" << other << "', which is no floor");
  }
  BOOST_TEST(floors == named, boost::test_tools::per_element());
  for (const Door& door : kDoors)
    for (const std::string& p : door.places)
      BOOST_TEST(fs::exists(kRoot / p),
                 "the door of " << door.include << ", " << p << ", is not there");
}

// A test that begins with a header of the engine is of that header.
BOOST_AUTO_TEST_CASE(tests_mirror_the_engine) {
  std::set<std::string> tested;
  for (const SourceFile& file : sources("tests/engine")) {
    if (!file.path.ends_with("_test.cpp")) continue;
    const std::string path = file.path.substr(std::string("tests/").size());
    tested.insert(fs::path(path).parent_path().filename());
    const auto first = std::ranges::find_if(
        file.lines, [](const std::string& line) { return line.starts_with("#include"); });
    if (first == file.lines.end() || !first->starts_with("#include \"engine/")) continue;
    const std::string header =
        first->substr(first->find('"') + 1, first->rfind('"') - first->find('"') - 1);
    BOOST_TEST(path == fs::path(header).replace_extension().string() + "_test.cpp",
               file.path << " is of " << header);
  }
  for (const auto& [floor, others] : kFloors)
    BOOST_TEST(tested.contains(floor), "nothing tests engine/" << floor);
}

BOOST_AUTO_TEST_CASE(floors_include_downwards_only) {
  for_each_include("engine", [](const SourceFile& file, std::size_t line,
                                const std::string& included) {
    if (!included.starts_with("engine/")) return;
    const auto floor_of = [](const std::string& path) {
      return path.substr(7, path.find('/', 7) == std::string::npos ? 0 : path.find('/', 7) - 7);
    };
    const std::string from = floor_of(file.path), to = floor_of(included);
    if (from.empty()) {  // main.cpp
      BOOST_TEST((to == "cli" || to == "base"),
                 place(file, line) << "the program may include engine/cli and engine/base only");
      return;
    }
    BOOST_TEST_REQUIRE(kFloors.contains(from),
                       place(file, line) << "unknown floor '" << from << "': add it to the table");
    BOOST_TEST((to == from || kFloors.at(from).contains(to)),
               place(file, line) << "floor '" << from << "' may not include '" << to << "'");
  });
}

BOOST_AUTO_TEST_CASE(the_bedrock_includes_c_headers_only) {
  for_each_include("sdk/include/heddle/abi", [](const SourceFile& file, std::size_t line,
                                                const std::string& included) {
    const bool allowed = included == "stddef.h" || included == "stdint.h" ||
                         fs::exists(kRoot / "sdk/include/heddle/abi" / included);
    BOOST_TEST(allowed, place(file, line) << included << " does not belong into the C ABI");
  });
}

BOOST_AUTO_TEST_CASE(the_sdk_and_plugins_know_nothing_of_the_engine) {
  for (const char* folder : {"sdk", "plugins"})
    for_each_include(folder, [](const SourceFile& file, std::size_t line,
                                const std::string& included) {
      BOOST_TEST(!included.starts_with("engine/"), place(file, line) << "includes " << included);
    });
}

BOOST_AUTO_TEST_CASE(plugins_do_not_include_each_other) {
  for_each_include("plugins", [](const SourceFile& file, std::size_t line,
                                 const std::string& included) {
    if (!included.starts_with("plugins/")) return;
    const std::string own = file.path.substr(0, file.path.find('/', 8) + 1);
    // What an op's operands have to be is written once, for all devices.
    const bool shared =
        included.starts_with("plugins/blocks/") || included == "plugins/cpu/op_check.h";
    BOOST_TEST((included.starts_with(own) || shared), place(file, line) << "includes " << included);
  });
}

BOOST_AUTO_TEST_CASE(every_dependency_has_one_door) {
  for (const char* folder : {"engine", "plugins", "sdk"})
    for_each_include(folder, [](const SourceFile& file, std::size_t line,
                                const std::string& included) {
      for (const Door& door : kDoors) {
        if (!included.starts_with(door.include)) continue;
        const bool allowed = std::ranges::any_of(
            door.places, [&](const std::string& p) { return file.path.starts_with(p); });
        BOOST_TEST(allowed, place(file, line)
                                << included << " has its door elsewhere: " << door.places.front());
      }
    });
}

BOOST_AUTO_TEST_CASE(no_file_is_too_long) {
  for (const char* folder : {"engine", "plugins", "sdk", "tests"})
    for (const SourceFile& file : sources(folder)) {
      const std::string name = fs::path(file.path).filename().string();
      const bool is_kernel =
          file.path.starts_with("plugins/cpu/") || file.path.starts_with("plugins/cuda/");
      BOOST_TEST(file.lines.size() <= (is_kernel ? 600u : 400u),
                 file.path << " has " << file.lines.size() << " lines: split it by idea");
    }
}

BOOST_AUTO_TEST_CASE(the_engine_has_never_heard_of_diffusion) {
  static const std::regex words("sampler|latent|vae", std::regex::icase);
  for (const SourceFile& file : sources("engine"))
    for (std::size_t i = 0; i < file.lines.size(); ++i)
      BOOST_TEST(!std::regex_search(file.lines[i], words), place(file, i + 1) << file.lines[i]);
}

BOOST_AUTO_TEST_CASE(no_path_of_a_machine_stands_in_the_sources) {
  // Written in two parts so that this line is not its own finding.
  static const std::regex paths(std::string("/ro") + "ot/|/ho" + "me/|/wo" + "rk/");
  for (const char* folder : {"engine", "plugins", "sdk", "tests"})
    for (const SourceFile& file : sources(folder))
      for (std::size_t i = 0; i < file.lines.size(); ++i)
        BOOST_TEST(!std::regex_search(file.lines[i], paths), place(file, i + 1) << file.lines[i]);
}

// They are built from these files, so they compile; hello.cpp has a comment line on top that the
// README leaves out.
BOOST_AUTO_TEST_CASE(the_samples_in_the_readme_are_the_ones_that_are_built) {
  std::string readme;
  std::ifstream in(kRoot / "README.md");
  for (std::string line; std::getline(in, line);) readme += line + "\n";
  for (const auto& [name, language] :
       {std::pair("hello.cpp", "cpp"), {"hello.json", "json"}, {"embed.cpp", "cpp"}}) {
    std::string sample;
    std::ifstream file(kRoot / "tests/sample_plugins" / name);
    for (std::string line; std::getline(file, line);)
      if (!line.starts_with("// hello.cpp")) sample += line + "\n";
    BOOST_TEST(sample.size() > 100u);
    BOOST_TEST(
        (readme.find(std::string("```") + language + "\n" + sample + "```") != std::string::npos),
        name << " and the README differ");
  }
}

BOOST_AUTO_TEST_SUITE_END()
