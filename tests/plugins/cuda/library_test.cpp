// NVIDIA's libraries are found where pip, conda and toolkits put them: a library of our own stands
// in for one.
#include "plugins/cuda/library.h"

#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "tests/support/temporary_folder.h"

using namespace heddle;
namespace fs = std::filesystem;

namespace {

// As long as it lives, these are all that the search goes by.
class Variables {
 public:
  explicit Variables(const std::map<std::string, std::string>& values) {
    for (const char* name : {"HEDDLE_CUDA_LIBRARIES", "CUDA_HOME", "CUDA_PATH", "VIRTUAL_ENV",
                             "CONDA_PREFIX", "PATH", "HOME"}) {
      const char* before = std::getenv(name);
      before_[name] = before == nullptr ? std::nullopt : std::optional<std::string>(before);
      const auto found = values.find(name);
      set(name, found == values.end() ? std::nullopt : std::optional(found->second));
    }
  }
  ~Variables() {
    for (const auto& [name, value] : before_) set(name.c_str(), value);
  }
  Variables(const Variables&) = delete;

 private:
  static void set(const char* name, const std::optional<std::string>& value) {
    if (value)
      ::setenv(name, value->c_str(), 1);
    else
      ::unsetenv(name);
  }
  std::map<std::string, std::optional<std::string>> before_;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(cuda_library)

BOOST_AUTO_TEST_CASE(libraries_are_found_where_they_are_usually_put) {
  const test::TemporaryFolder folder;
  const std::string root = folder.path().string();
  const std::string packages = "lib/python3.12/site-packages/nvidia/";
  fs::create_directories(folder.path() / "real/bin");
  fs::create_directories(folder.path() / "links");
  folder.write("real/bin/python3.12", "");
  fs::create_symlink("python3.12", folder.path() / "real/bin/python3");
  fs::create_symlink(folder.path() / "real/bin/python3", folder.path() / "links/python3");
  struct Case {
    const char* name;
    std::string library;  // below the root
    std::map<std::string, std::string> variables;
  };
  int number = 0;
  for (const Case& one : std::initializer_list<Case>{
           {"named", "here", {{"HEDDLE_CUDA_LIBRARIES", root + "/none:" + root + "/here"}}},
           {"toolkit", "cuda/lib64", {{"CUDA_HOME", root + "/cuda"}}},
           {"virtual environment",
            "venv/" + packages + "cu13/lib",
            {{"VIRTUAL_ENV", root + "/venv"}}},
           {"pip in conda", "conda/" + packages + "cudnn/lib", {{"CONDA_PREFIX", root + "/conda"}}},
           {"conda", "conda/lib", {{"CONDA_PREFIX", root + "/conda"}}},
           {"python on PATH",
            "real/" + packages + "nccl/lib",
            {{"PATH", root + "/none:" + root + "/links"}}},
           {"64 bits",
            "venv/lib64/python3.9/site-packages/nvidia/cudnn/lib",
            {{"VIRTUAL_ENV", root + "/venv"}}},
           {"of the user", "home/.local/" + packages + "cudnn/lib", {{"HOME", root + "/home"}}}})
    BOOST_TEST_CONTEXT(one.name) {
      // A name of its own each time: what was once opened, the loader finds by its name.
      const std::string name = "libheddle_probe" + std::to_string(++number) + ".so";
      fs::create_directories(folder.path() / one.library);
      fs::copy_file(HEDDLE_SAMPLE_PLUGINS_DIR "/sample_counter.so",
                    folder.path() / one.library / name);
      {
        const Variables nothing({});
        BOOST_TEST(cuda::open_library(name.c_str()) == nullptr);
      }
      const Variables set(one.variables);
      BOOST_TEST(cuda::open_library(name.c_str()) != nullptr);
    }
}

BOOST_AUTO_TEST_SUITE_END()
