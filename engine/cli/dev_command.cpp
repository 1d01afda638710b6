// dev: builds the folder of a plugin, tests it and runs its workflow, and again when a file
// changes. Each time in processes of their own, so that what a plugin does to its process is over
// with it.
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <string_view>
#include <system_error>

#include "engine/base/error.h"
#include "engine/base/folder.h"
#include "engine/base/own_folder.h"
#include "engine/base/text.h"
#include "engine/cli/commands.h"

extern char** environ;

namespace heddle::cli {
namespace {

namespace fs = std::filesystem;

using engine::cat;
using engine::Code;
using engine::Error;

constexpr int kLookMilliseconds = 300;

// Its exit code; of a signal 128 and its number, as a shell has it. It is in our process group, so
// that Ctrl-C ends both.
int run_process(const std::vector<std::string>& command) {
  std::vector<char*> arguments;
  for (const std::string& part : command) arguments.push_back(const_cast<char*>(part.c_str()));
  arguments.push_back(nullptr);
  pid_t process = 0;
  if (const int failure =
          ::posix_spawnp(&process, arguments[0], nullptr, nullptr, arguments.data(), environ))
    throw Error(Code::not_found, cat("heddle dev: ", command.front(), ": ", std::strerror(failure),
                                     ". It takes CMake, its ctest, and a C++ compiler in $PATH."));
  int status = 0;
  while (::waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

bool has_in_path(const char* program) {
  const char* const path = std::getenv("PATH");
  std::string_view rest = path == nullptr ? "" : path;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(':'), rest.size());
    if (::access((fs::path(rest.substr(0, end)) / program).c_str(), X_OK) == 0) return true;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return false;
}

// What can change: all files but hidden ones and what is built and made, with time and size.
using Files = std::map<fs::path, std::pair<fs::file_time_type, std::uintmax_t>>;

Files files_in(const fs::path& folder) {
  Files found;
  std::error_code error;
  const auto add = [&](const engine::FolderEntry& entry, int) {
    const std::string name = entry.name();
    if (name.starts_with(".") || name == "build" || name == "output") return false;
    std::error_code gone;  // an editor's file may go while we look
    if (entry.is_file())
      found[entry.path] = {fs::last_write_time(entry.path, gone), fs::file_size(entry.path, gone)};
    return true;
  };
  engine::walk(folder, engine::Links::stay, add, error);
  return found;
}

// True when all went well. What went wrong the processes have said.
bool build_and_run(const fs::path& folder, Output& output) {
  const std::string build = (folder / "build").string();
  const std::vector<std::vector<std::string>> steps{
      configure_command(folder.string(), build),
      {"cmake", "--build", build},
      {"ctest", "--test-dir", build, "--output-on-failure"},
      {"cmake", "--build", build, "--target", "run_workflow"}};
  for (const std::vector<std::string>& step : steps)
    if (const int code = run_process(step); code != 0) {
      output.write(cat("heddle dev: `", engine::join(step, " "), "` ended with ", code, "\n"));
      return false;
    }
  return true;
}

// Until a file changes, or a line comes in on stdin. False: stdin is at its end, and a program that
// gives dev no more lines still wants changes looked for.
bool wait_for_reason(const fs::path& folder, const Files& before, bool reads) {
  pollfd line{reads ? STDIN_FILENO : -1, POLLIN, 0};
  for (;;) {
    const int came = ::poll(&line, 1, kLookMilliseconds);
    if (came > 0 && line.revents != 0) {
      char text[256];
      const ssize_t size = ::read(STDIN_FILENO, text, sizeof text);
      if (size > 0) return reads;
      reads = false;
      line.fd = -1;
    }
    if (files_in(folder) != before) return reads;
  }
}

}  // namespace

std::vector<std::string> configure_command(const std::string& folder, const std::string& build) {
  // A build folder is the program's; an installed heddle is a folder above it.
  const fs::path program = engine::program_folder();
  std::error_code error;
  const bool is_build = fs::exists(program / "cmake" / "heddleConfig.cmake", error);
  std::vector<std::string> command{
      "cmake", "-S",
      folder,  "-B",
      build,   cat("-DCMAKE_PREFIX_PATH=", (is_build ? program : program.parent_path()).string())};
  // CMake's own choice is make, which may not be there; a choice made before stays.
  if (!fs::exists(fs::path(build) / "CMakeCache.txt", error) &&
      std::getenv("CMAKE_GENERATOR") == nullptr && has_in_path("ninja"))
    command.insert(command.end(), {"-G", "Ninja"});
  return command;
}

int develop_plugin(const Request& request, Output& output) {
  const fs::path folder = request.operands.empty() ? fs::path() : fs::path(request.operands[0]);
  std::error_code error;
  if (request.operands.size() != 1 || !fs::is_regular_file(folder / "CMakeLists.txt", error))
    throw Error(
        Code::invalid_argument,
        "heddle dev: it takes the folder of a plugin, with a CMakeLists.txt as `heddle new` "
        "writes it.");
  bool reads = true;
  for (;;) {
    const Files before = files_in(folder);
    const bool went_well = build_and_run(folder, output);
    output.write(cat("heddle dev: ", went_well ? "all is well" : "that failed",
                     ". Again when a file in ", folder.string(),
                     " changes, or with Enter; Ctrl-C ends.\n"));
    reads = wait_for_reason(folder, before, reads);
  }
}

}  // namespace heddle::cli
