// Pictures that requests want converted: a few at a time, of all requests. Any thread.
#pragma once

#include <functional>
#include <string>

#include "heddle/engine.hpp"

namespace heddle::engine {

// The bytes of the picture file that is made of another one, as Engine::convert_picture() does it.
// `file` gives the bytes of that one when it is its turn: a file and its pixels are in memory
// meanwhile. Throws Refused with 400 for what is no picture, is broken or too large.
std::string converted_picture(const heddle::Engine& engine,
                              const std::function<std::string()>& file,
                              const heddle::PictureConversion& conversion);

}  // namespace heddle::engine
