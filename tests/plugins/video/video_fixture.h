// Runs workflows of video and sound on the files of data/, and looks at what they write.
#pragma once

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "tests/support/engine_fixture.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tensor_file.h"

namespace heddle::video::testing {

namespace fs = std::filesystem;

inline const fs::path kTests = fs::path(HEDDLE_TESTS_DIR) / "plugins/video";

inline std::string bytes_of_file(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

struct VideoFixture {
  heddle::test::TemporaryFolder folder;
  Engine engine{options()};

  EngineOptions options() const {
    fs::create_directories(folder / "in");
    fs::create_directories(folder / "out");
    for (const auto& entry : fs::directory_iterator(kTests / "data"))
      fs::copy_file(entry.path(), folder / "in" / entry.path().filename());
    return options_of("out");
  }
  // For files that go to another folder.
  EngineOptions options_of(const char* output) const {
    EngineOptions options = heddle::test::engine_options();
    options.input_dir = folder / "in";
    options.output_dir = folder / output;
    return options;
  }

  Results run(const std::string& nodes, std::vector<std::string> keep = {}) {
    return engine.start(engine.parse("{" + nodes + "}"), {{}, std::move(keep)}).wait();
  }
  std::string refusal(const std::string& nodes) {
    return heddle::test::engine_refusal([&] { run(nodes); });
  }

  // The pictures and sound of a file as GetVideoComponents gives them, as node "c".
  static std::string components(const std::string& file, const std::string& more = "",
                                const std::string& from = "v") {
    return R"("v": {"class_type": "LoadVideo", "inputs": {"file": ")" + file + R"("}}, )" + more +
           R"("c": {"class_type": "GetVideoComponents", "inputs": {"video": [")" + from +
           R"(", 0]}}, "look": {"class_type": "test.look", "inputs": {"value": ["c", 0]}})" +
           R"(, "hear": {"class_type": "test.look", "inputs": {"value": ["c", 1]}})" +
           R"(, "rate": {"class_type": "test.look", "inputs": {"value": ["c", 2]}})";
  }
  Results read(const std::string& file, const std::string& more = "",
               const std::string& from = "v") {
    return run(components(file, more, from), {"c.images"});
  }

  std::vector<std::string> saved() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::recursive_directory_iterator(folder / "out"))
      if (entry.is_regular_file())
        names.push_back(entry.path().lexically_relative(folder / "out").string());
    std::sort(names.begin(), names.end());
    return names;
  }
};

inline double greatest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return INFINITY;
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    most = std::max(most, std::isnan(a[i]) ? INFINITY : std::fabs(double(a[i]) - double(b[i])));
  return most;
}

}  // namespace heddle::video::testing
