#include "plugins/shader/drawing_process.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>

extern char** environ;

namespace heddle::shader {
namespace {

// Beside the plugin.
std::string program_path() {
  Dl_info info{};
  if (::dladdr(reinterpret_cast<const void*>(&program_path), &info) == 0 ||
      info.dli_fname == nullptr)
    throw Error(HEDDLE_INTERNAL, "the folder of the shader plugin is not known");
  return (std::filesystem::path(info.dli_fname).parent_path() / "heddle_shader").string();
}

[[noreturn]] void fail_to_start(const std::string& path, int error) {
  throw Error(HEDDLE_IO, path + ": it cannot be started: " + std::strerror(error) +
                             ". It belongs beside the shader plugin; build heddle again.");
}

}  // namespace

std::chrono::seconds drawing_time() {
  const char* const given = std::getenv("HEDDLE_SHADER_SECONDS");
  if (given == nullptr) return std::chrono::seconds(60);
  int seconds = 0;
  const char* const end = given + std::strlen(given);
  const auto [at, error] = std::from_chars(given, end, seconds);
  if (error != std::errc() || at != end || seconds < 1 || seconds > 86400)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                std::string("HEDDLE_SHADER_SECONDS is '") + given +
                    "'. Give a whole number of seconds from 1 to 86400, or leave it out.");
  return std::chrono::seconds(seconds);
}

DrawingProcess::DrawingProcess(Context& ctx, const Request& request, const std::string& source,
                               std::span<const float> curves)
    : ctx_(ctx), time_(drawing_time()), end_(std::chrono::steady_clock::now() + time_) {
  const std::string path = program_path();
  int sockets[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0)
    fail_to_start(path, errno);
  child_.socket = sockets[0];
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, sockets[1], STDIN_FILENO);
  // What the driver prints is of no use to anybody here.
  ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  char* const arguments[] = {const_cast<char*>(path.c_str()), nullptr};
  pid_t process = -1;
  const int error = ::posix_spawn(&process, path.c_str(), &actions, nullptr, arguments, environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(sockets[1]);
  if (error != 0) fail_to_start(path, error);
  child_.process = process;
  write(&request, sizeof request);
  write(source.data(), source.size());
  send(curves);
}

Child::~Child() {
  if (socket >= 0) ::close(socket);
  if (process < 0) return;
  ::kill(process, SIGKILL);
  while (::waitpid(process, nullptr, 0) < 0 && errno == EINTR) continue;
}

void DrawingProcess::wait_until(short ready) {
  constexpr int kLook = 20;  // ms, between two looks at whether the run was cancelled
  while (true) {
    if (ctx_.cancelled()) throw Error(HEDDLE_CANCELLED, "the run was cancelled");
    if (std::chrono::steady_clock::now() >= end_)
      throw Error(HEDDLE_UNSUPPORTED,
                  "fragment_shader: it was stopped after " + std::to_string(time_.count()) +
                      " s. Look for a loop without an end, draw a smaller picture, or give it more "
                      "time with HEDDLE_SHADER_SECONDS.");
    pollfd waiting{child_.socket, ready, 0};
    if (::poll(&waiting, 1, kLook) > 0) return;
  }
}

void DrawingProcess::write(const void* from, std::size_t bytes) {
  const auto* at = static_cast<const char*>(from);
  while (bytes > 0) {
    wait_until(POLLOUT);
    const ssize_t sent = ::send(child_.socket, at, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (sent < 0) return;  // it has ended: its last words are read
    at += sent;
    bytes -= std::size_t(sent);
  }
}

void DrawingProcess::read(void* to, std::size_t bytes) {
  auto* at = static_cast<char*>(to);
  while (bytes > 0) {
    wait_until(POLLIN);
    const ssize_t got = ::recv(child_.socket, at, bytes, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (got <= 0)
      throw Error(HEDDLE_INTERNAL,
                  "fragment_shader: the process that draws has ended without an answer. The driver "
                  "of OpenGL fails, or the memory is short. Draw a smaller picture.");
    at += got;
    bytes -= std::size_t(got);
  }
}

void DrawingProcess::await_drawn() {
  Reply reply;
  read(&reply, sizeof reply);
  if (reply.is_drawn != 0) return;
  std::string text(reply.error_bytes, '\0');
  read(text.data(), text.size());
  throw Error(HEDDLE_INVALID_ARGUMENT, "fragment_shader: " + text);
}

}  // namespace heddle::shader
