// A context of OpenGL 3.3 without a window, by EGL, and the functions of OpenGL that the process
// calls. They are looked up by EGL, so that no library of OpenGL has to be linked. One thread.
#pragma once

#include <EGL/egl.h>
#include <GLES3/gl3.h>

#include <stdexcept>
#include <string>

namespace heddle::shader {

// clang-format off
#define HEDDLE_GL_FUNCTIONS(X) \
  X(glActiveTexture) X(glAttachShader) X(glBindFramebuffer) X(glBindTexture) \
  X(glBindVertexArray) X(glCheckFramebufferStatus) X(glClear) X(glClearColor) \
  X(glCompileShader) X(glCreateProgram) X(glCreateShader) X(glDeleteTextures) \
  X(glDisable) X(glDrawArrays) X(glDrawBuffers) X(glFramebufferTexture2D) \
  X(glGenFramebuffers) X(glGenTextures) X(glGenVertexArrays) X(glGetError) \
  X(glGetIntegerv) X(glGetProgramInfoLog) X(glGetProgramiv) X(glGetShaderInfoLog) \
  X(glGetShaderiv) X(glGetUniformLocation) X(glLinkProgram) X(glPixelStorei) \
  X(glReadBuffer) X(glReadPixels) X(glShaderSource) X(glTexImage2D) X(glTexParameteri) \
  X(glUniform1f) X(glUniform1i) X(glUniform2f) X(glUseProgram) X(glViewport)
// clang-format on

struct Gl {
#define HEDDLE_GL_MEMBER(name) decltype(&::name) name = nullptr;
  HEDDLE_GL_FUNCTIONS(HEDDLE_GL_MEMBER)
#undef HEDDLE_GL_MEMBER
};

// The context is current from then on, until the process ends. Throws std::runtime_error.
Gl start_gl();

}  // namespace heddle::shader
