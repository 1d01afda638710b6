#include "engine/cli/draw.h"

#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "engine/base/descriptor.h"
#include "engine/base/error.h"
#include "engine/base/read_file.h"
#include "engine/base/text.h"
#include "engine/base/write_file.h"

extern char** environ;

namespace heddle::cli {
namespace {

using engine::cat;
using engine::Code;
using engine::Error;

// Memory that another program reads and writes as its stdin and stdout.
engine::FileDescriptor make_memory_file(const char* name) {
  const int file = ::memfd_create(name, MFD_CLOEXEC);
  if (file < 0) throw engine::system_error("memory for dot", errno);
  return engine::FileDescriptor(file);
}

// Neither a shell nor the name of a file comes between, so none can be taken for an option.
std::string run_dot(const std::string& source) {
  const engine::FileDescriptor in = make_memory_file("dot"), out = make_memory_file("svg");
  engine::write_file(cat("/proc/self/fd/", in.number()), source, engine::Lasting::no);
  ::lseek(in.number(), 0, SEEK_SET);
  std::string name = "dot", format = "-Tsvg";
  char* const arguments[] = {name.data(), format.data(), nullptr};
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, in.number(), STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, out.number(), STDOUT_FILENO);
  pid_t child = 0;
  const int failure = ::posix_spawnp(&child, "dot", &actions, nullptr, arguments, environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (failure == ENOENT)
    throw Error(Code::unsupported,
                "drawing a plan needs the program `dot`, which is not there: install the Debian "
                "package graphviz, or name a file that ends in .dot to get dot's input");
  if (failure != 0) throw engine::system_error("dot", failure);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0)
    if (errno != EINTR) throw engine::system_error("dot", errno);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    throw Error(Code::internal,
                "dot could not draw the plan; name a file that ends in .dot to look at its input");
  constexpr std::uint64_t kMostBytes = 1 << 30;
  return engine::read_file(cat("/proc/self/fd/", out.number()), {"a drawing", kMostBytes});
}

}  // namespace

void draw(const std::string& dot_source, const std::filesystem::path& file) {
  const bool is_source = file.extension() == ".dot";
  engine::write_file(file, is_source ? dot_source : run_dot(dot_source), engine::Lasting::yes);
}

}  // namespace heddle::cli
