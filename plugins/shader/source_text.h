// What is read out of the text of a fragment shader before OpenGL sees it. Pure; any thread.
#pragma once

#include <cstdint>
#include <string>

namespace heddle::shader {

// The text for OpenGL 3.3, as ComfyUI converts it from WebGL's GLSL ES 3.00: another #version, and
// no default precisions. Lines keep their numbers. Without text: a shader that copies u_image0.
std::string desktop_shader(const std::string& text);

// 1 + the greatest number of a fragColorN in it, 1 to kMostOutputs.
std::uint32_t output_count(const std::string& text);

// Whether the text speaks of fragColorN; of N = 0 also if it speaks of none.
bool writes_output(const std::string& text, std::uint32_t number);

// N of "#pragma passes N", at least 1.
std::uint32_t pass_count(const std::string& text);

}  // namespace heddle::shader
