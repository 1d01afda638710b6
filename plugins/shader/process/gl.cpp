#include "plugins/shader/process/gl.h"

#include <EGL/eglext.h>

#include <cstdio>

namespace heddle::shader {
namespace {

[[noreturn]] void fail(const char* what) {
  char number[32];
  std::snprintf(number, sizeof number, "0x%x", unsigned(eglGetError()));
  throw std::runtime_error(std::string("EGL: ") + what + " fails with error " + number +
                           ". Install Mesa's software driver (Debian: libegl-mesa0, "
                           "libgl1-mesa-dri)");
}

template <class F>
void look_up(F*& function, const char* name) {
  function = reinterpret_cast<F*>(eglGetProcAddress(name));
  if (function == nullptr) throw std::runtime_error(std::string("OpenGL has no ") + name);
}

}  // namespace

Gl start_gl() {
  const auto get_display = reinterpret_cast<PFNEGLGETPLATFORMDISPLAYEXTPROC>(
      eglGetProcAddress("eglGetPlatformDisplayEXT"));
  if (get_display == nullptr) fail("eglGetPlatformDisplayEXT");
  const EGLDisplay display =
      get_display(EGL_PLATFORM_SURFACELESS_MESA, EGL_DEFAULT_DISPLAY, nullptr);
  if (display == EGL_NO_DISPLAY) fail("eglGetPlatformDisplayEXT");
  if (eglInitialize(display, nullptr, nullptr) == EGL_FALSE) fail("eglInitialize");
  if (eglBindAPI(EGL_OPENGL_API) == EGL_FALSE) fail("eglBindAPI");
  const EGLint wanted[] = {EGL_SURFACE_TYPE, 0, EGL_RENDERABLE_TYPE, EGL_OPENGL_BIT, EGL_NONE};
  EGLConfig config = nullptr;
  EGLint count = 0;
  if (eglChooseConfig(display, wanted, &config, 1, &count) == EGL_FALSE || count == 0)
    fail("eglChooseConfig");
  const EGLint version[] = {EGL_CONTEXT_MAJOR_VERSION,
                            3,
                            EGL_CONTEXT_MINOR_VERSION,
                            3,
                            EGL_CONTEXT_OPENGL_PROFILE_MASK,
                            EGL_CONTEXT_OPENGL_CORE_PROFILE_BIT,
                            EGL_NONE};
  const EGLContext context = eglCreateContext(display, config, EGL_NO_CONTEXT, version);
  if (context == EGL_NO_CONTEXT) fail("eglCreateContext");
  if (eglMakeCurrent(display, EGL_NO_SURFACE, EGL_NO_SURFACE, context) == EGL_FALSE)
    fail("eglMakeCurrent");
  Gl gl;
#define HEDDLE_GL_LOOK_UP(name) look_up(gl.name, #name);
  HEDDLE_GL_FUNCTIONS(HEDDLE_GL_LOOK_UP)
#undef HEDDLE_GL_LOOK_UP
  return gl;
}

}  // namespace heddle::shader
