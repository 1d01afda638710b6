// A fragment shader over pictures. One thread; needs a current context.
#pragma once

#include <string>
#include <vector>

#include "plugins/shader/messages.h"
#include "plugins/shader/process/gl.h"

namespace heddle::shader {

class Drawing {
 public:
  // curves: kCurveLength numbers each. Throws std::runtime_error with the driver's messages, which
  // name lines of the fragment shader.
  Drawing(const Gl& gl, const Request& request, const std::string& fragment,
          const std::vector<float>& curves);
  // images: RGBA of the request's sizes. The outputs, one after another.
  std::vector<float> draw(const std::vector<std::vector<float>>& images);

 private:
  GLuint shader_of(GLenum kind, const std::string& text);
  void link(const std::string& fragment);
  GLuint texture(GLint format, GLsizei width, GLsizei height, GLenum layout, const float* pixels);
  GLuint target(GLuint colour);
  void set_uniforms(const std::vector<float>& curves);
  void run_pass(std::uint32_t pass);
  GLint place_of(const std::string& name) {
    return gl_.glGetUniformLocation(program_, name.c_str());
  }

  const Gl& gl_;
  const Request& request_;
  GLuint program_ = 0, outputs_ = 0;
  GLuint first_image_ = 0;
  std::vector<GLuint> turns_, turn_targets_;  // what passes before the last draw, in turns
};

}  // namespace heddle::shader
