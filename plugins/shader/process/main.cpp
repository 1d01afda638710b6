// heddle_shader: draws one node's pictures in a process of its own, which can be stopped whatever
// the shader does. It talks over the socket that it has as its standard input.
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "plugins/shader/process/drawing.h"

namespace {

using namespace heddle::shader;

constexpr int kSocket = STDIN_FILENO;

// The plugin is gone, or wants no more.
struct Ended : std::exception {};

void receive(void* to, std::size_t bytes) {
  auto* at = static_cast<char*>(to);
  while (bytes > 0) {
    const ssize_t got = ::recv(kSocket, at, bytes, 0);
    if (got <= 0) throw Ended();
    at += got;
    bytes -= std::size_t(got);
  }
}

void send_all(const void* from, std::size_t bytes) {
  const auto* at = static_cast<const char*>(from);
  while (bytes > 0) {
    const ssize_t sent = ::send(kSocket, at, bytes, MSG_NOSIGNAL);
    if (sent <= 0) throw Ended();
    at += sent;
    bytes -= std::size_t(sent);
  }
}

void serve() {
  Request request;
  receive(&request, sizeof request);
  std::string source(request.source_bytes, '\0');
  receive(source.data(), source.size());
  std::vector<float> curves(std::size_t(request.curves) * kCurveLength);
  receive(curves.data(), curves.size() * sizeof(float));
  const Gl gl = start_gl();
  Drawing drawing(gl, request, source, curves);
  std::vector<std::vector<float>> images(request.images);
  for (std::uint32_t i = 0; i < request.images; ++i)
    images[i].resize(std::size_t(request.image_width[i]) * request.image_height[i] * 4);
  while (true) {
    for (std::vector<float>& image : images) receive(image.data(), image.size() * sizeof(float));
    const std::vector<float> drawn = drawing.draw(images);
    const Reply reply{1, 0};
    send_all(&reply, sizeof reply);
    send_all(drawn.data(), drawn.size() * sizeof(float));
  }
}

}  // namespace

int main() {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // nobody waits for it then
  // The driver on the CPU, wherever it runs: the same pixels everywhere.
  ::setenv("LIBGL_ALWAYS_SOFTWARE", "1", 1);
  ::setenv("GALLIUM_DRIVER", "llvmpipe", 1);
  // Not that of a GPU's vendor.
  constexpr const char* kMesa = "/usr/share/glvnd/egl_vendor.d/50_mesa.json";
  if (::access(kMesa, R_OK) == 0) ::setenv("__EGL_VENDOR_LIBRARY_FILENAMES", kMesa, 1);
  try {
    serve();
  } catch (const Ended&) {
    return 0;
  } catch (const std::exception& error) {
    const std::string text = error.what();
    const Reply reply{0, std::uint32_t(text.size())};
    try {
      send_all(&reply, sizeof reply);
      send_all(text.data(), text.size());
    } catch (const Ended&) {
      return 0;
    }
  }
  return 0;
}
