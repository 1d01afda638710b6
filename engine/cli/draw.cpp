#include "engine/cli/draw.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "engine/base/atomic_file.h"
#include "engine/base/error.h"
#include "engine/base/text.h"

extern char** environ;

namespace heddle::cli {
namespace {

using core::cat;
using core::Code;
using core::Error;

// The exit status of `dot`, as waitpid() tells it; no shell comes between.
int run_dot(const std::string& source, const std::string& result) {
  std::string name = "dot", format = "-Tsvg", out = "-o", result_file = result,
              source_file = source;
  char* const arguments[] = {name.data(),        format.data(),      out.data(),
                             result_file.data(), source_file.data(), nullptr};
  pid_t child = 0;
  const int failure = ::posix_spawnp(&child, "dot", nullptr, nullptr, arguments, environ);
  if (failure == ENOENT)
    throw Error(Code::unsupported,
                "drawing a plan needs the program `dot`, which is not there: install the Debian "
                "package graphviz, or name a file that ends in .dot to get dot's input");
  if (failure != 0) throw core::system_error("dot", failure);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0)
    if (errno != EINTR) throw core::system_error("dot", errno);
  return status;
}

// Removed when it goes out of scope, unless it has been renamed by then.
struct TemporaryFile {
  std::string path;
  ~TemporaryFile() { ::unlink(path.c_str()); }
};

}  // namespace

void draw(const std::string& dot_source, const std::filesystem::path& file) {
  if (file.extension() == ".dot") return core::write_file_atomically(file, dot_source);
  const TemporaryFile source{cat(file.string(), ".", ::getpid(), ".dot")};
  const TemporaryFile result{cat(file.string(), ".", ::getpid(), ".part")};
  core::write_file_atomically(source.path, dot_source);
  const int status = run_dot(source.path, result.path);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    throw Error(Code::internal, cat(file.string(),
                                    ": dot could not draw the plan; name a file that "
                                    "ends in .dot to look at its input"));
  if (::rename(result.path.c_str(), file.c_str()) != 0)
    throw core::system_error(file.string(), errno);
}

}  // namespace heddle::cli
