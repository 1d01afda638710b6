#include "plugins/shader/process/drawing.h"

namespace heddle::shader {
namespace {

// One triangle that covers the picture; no buffer of corners is needed.
constexpr const char* kVertexShader = R"(#version 330 core
out vec2 v_texCoord;
void main() {
  vec2 corner = vec2(gl_VertexID == 1 ? 3.0 : -1.0, gl_VertexID == 2 ? 3.0 : -1.0);
  v_texCoord = corner * 0.5 + 0.5;
  gl_Position = vec4(corner, 0.0, 1.0);
}
)";

std::string numbered(const char* name, std::uint32_t number) {
  return name + std::to_string(number);
}

}  // namespace

Drawing::Drawing(const Gl& gl, const Request& request, const std::string& fragment,
                 const std::vector<float>& curves)
    : gl_(gl), request_(request) {
  GLint most = 0;
  gl_.glGetIntegerv(GL_MAX_TEXTURE_SIZE, &most);
  for (const std::uint32_t side : {request.width, request.height})
    if (side > std::uint32_t(most))
      throw std::runtime_error("a picture with a side of " + std::to_string(side) +
                               " pixels is too large for OpenGL, which takes " +
                               std::to_string(most));
  GLuint corners = 0;
  gl_.glGenVertexArrays(1, &corners);
  gl_.glBindVertexArray(corners);
  gl_.glDisable(GL_BLEND);
  gl_.glDisable(GL_DITHER);
  link(fragment);
  const auto width = GLsizei(request.width), height = GLsizei(request.height);
  outputs_ = target(texture(GL_RGBA32F, width, height, GL_RGBA, nullptr));
  std::vector<GLenum> buffers = {GL_COLOR_ATTACHMENT0};
  for (GLenum i = 1; i < request.outputs; ++i) {
    buffers.push_back(GL_COLOR_ATTACHMENT0 + i);
    gl_.glFramebufferTexture2D(GL_FRAMEBUFFER, buffers.back(), GL_TEXTURE_2D,
                               texture(GL_RGBA32F, width, height, GL_RGBA, nullptr), 0);
  }
  gl_.glDrawBuffers(GLsizei(buffers.size()), buffers.data());
  if (gl_.glCheckFramebufferStatus(GL_FRAMEBUFFER) != GL_FRAMEBUFFER_COMPLETE)
    throw std::runtime_error("OpenGL draws no pictures of 32-bit floats");
  for (std::uint32_t i = 0; request.passes > 1 && i < 2; ++i) {
    turns_.push_back(texture(GL_RGBA32F, width, height, GL_RGBA, nullptr));
    turn_targets_.push_back(target(turns_.back()));
  }
  set_uniforms(curves);
  gl_.glViewport(0, 0, width, height);
}

GLuint Drawing::shader_of(GLenum kind, const std::string& text) {
  const GLuint shader = gl_.glCreateShader(kind);
  const char* const start = text.c_str();
  gl_.glShaderSource(shader, 1, &start, nullptr);
  gl_.glCompileShader(shader);
  GLint is_good = 0, length = 0;
  gl_.glGetShaderiv(shader, GL_COMPILE_STATUS, &is_good);
  if (is_good != 0) return shader;
  gl_.glGetShaderiv(shader, GL_INFO_LOG_LENGTH, &length);
  std::string log(std::size_t(length) + 1, '\0');
  gl_.glGetShaderInfoLog(shader, length + 1, &length, log.data());
  log.resize(std::size_t(length));
  throw std::runtime_error("it does not compile. The driver says (source:line(column)):\n" + log);
}

void Drawing::link(const std::string& fragment) {
  program_ = gl_.glCreateProgram();
  gl_.glAttachShader(program_, shader_of(GL_VERTEX_SHADER, kVertexShader));
  gl_.glAttachShader(program_, shader_of(GL_FRAGMENT_SHADER, fragment));
  gl_.glLinkProgram(program_);
  GLint is_good = 0, length = 0;
  gl_.glGetProgramiv(program_, GL_LINK_STATUS, &is_good);
  if (is_good == 0) {
    gl_.glGetProgramiv(program_, GL_INFO_LOG_LENGTH, &length);
    std::string log(std::size_t(length) + 1, '\0');
    gl_.glGetProgramInfoLog(program_, length + 1, &length, log.data());
    log.resize(std::size_t(length));
    throw std::runtime_error("it does not link. The driver says:\n" + log);
  }
  gl_.glUseProgram(program_);
}

GLuint Drawing::texture(GLint format, GLsizei width, GLsizei height, GLenum layout,
                        const float* pixels) {
  GLuint name = 0;
  gl_.glGenTextures(1, &name);
  gl_.glBindTexture(GL_TEXTURE_2D, name);
  gl_.glTexImage2D(GL_TEXTURE_2D, 0, format, width, height, 0, layout, GL_FLOAT, pixels);
  for (const GLenum filter : {GL_TEXTURE_MIN_FILTER, GL_TEXTURE_MAG_FILTER})
    gl_.glTexParameteri(GL_TEXTURE_2D, filter, GL_LINEAR);
  for (const GLenum wrap : {GL_TEXTURE_WRAP_S, GL_TEXTURE_WRAP_T})
    gl_.glTexParameteri(GL_TEXTURE_2D, wrap, GL_CLAMP_TO_EDGE);
  return name;
}

GLuint Drawing::target(GLuint colour) {
  GLuint name = 0;
  gl_.glGenFramebuffers(1, &name);
  gl_.glBindFramebuffer(GL_FRAMEBUFFER, name);
  gl_.glFramebufferTexture2D(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_TEXTURE_2D, colour, 0);
  return name;
}

void Drawing::set_uniforms(const std::vector<float>& curves) {
  gl_.glUniform2f(place_of("u_resolution"), float(request_.width), float(request_.height));
  for (std::uint32_t i = 0; i < request_.floats; ++i)
    gl_.glUniform1f(place_of(numbered("u_float", i)), request_.float_values[i]);
  for (std::uint32_t i = 0; i < request_.ints; ++i)
    gl_.glUniform1i(place_of(numbered("u_int", i)), request_.int_values[i]);
  for (std::uint32_t i = 0; i < request_.bools; ++i)
    gl_.glUniform1i(place_of(numbered("u_bool", i)), request_.bool_values[i]);
  for (std::uint32_t i = 0; i < request_.images; ++i)
    gl_.glUniform1i(place_of(numbered("u_image", i)), GLint(i));
  for (std::uint32_t i = 0; i < request_.curves; ++i) {
    const std::uint32_t unit = kMostImages + i;  // behind those of the pictures
    gl_.glActiveTexture(GL_TEXTURE0 + unit);
    texture(GL_R32F, kCurveLength, 1, GL_RED, curves.data() + i * kCurveLength);
    gl_.glUniform1i(place_of(numbered("u_curve", i)), GLint(unit));
  }
}

void Drawing::run_pass(std::uint32_t pass) {
  const bool is_last = pass + 1 == request_.passes;
  gl_.glUniform1i(place_of("u_pass"), GLint(pass));
  gl_.glBindFramebuffer(GL_FRAMEBUFFER, is_last ? outputs_ : turn_targets_[pass % 2]);
  gl_.glActiveTexture(GL_TEXTURE0);
  gl_.glBindTexture(GL_TEXTURE_2D, pass == 0 ? first_image_ : turns_[(pass - 1) % 2]);
  gl_.glClearColor(0, 0, 0, 0);
  gl_.glClear(GL_COLOR_BUFFER_BIT);
  gl_.glDrawArrays(GL_TRIANGLES, 0, 3);
}

std::vector<float> Drawing::draw(const std::vector<std::vector<float>>& images) {
  std::vector<GLuint> given;
  for (std::uint32_t i = 0; i < images.size(); ++i) {
    gl_.glActiveTexture(GL_TEXTURE0 + i);
    given.push_back(texture(GL_RGBA32F, GLsizei(request_.image_width[i]),
                            GLsizei(request_.image_height[i]), GL_RGBA, images[i].data()));
  }
  first_image_ = given.front();
  for (std::uint32_t pass = 0; pass < request_.passes; ++pass) run_pass(pass);
  const std::size_t size = std::size_t(request_.width) * request_.height * 4;
  std::vector<float> drawn(size * request_.outputs);
  for (GLenum i = 0; i < request_.outputs; ++i) {
    gl_.glReadBuffer(GL_COLOR_ATTACHMENT0 + i);
    gl_.glReadPixels(0, 0, GLsizei(request_.width), GLsizei(request_.height), GL_RGBA, GL_FLOAT,
                     drawn.data() + i * size);
  }
  gl_.glDeleteTextures(GLsizei(given.size()), given.data());
  if (gl_.glGetError() != GL_NO_ERROR) throw std::runtime_error("OpenGL reports an error");
  return drawn;
}

}  // namespace heddle::shader
