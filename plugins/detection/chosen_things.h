// plugins/detection/chosen_things.h - numbers of things that a text names, apart by commas. Pure;
// any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace heddle::detection {

// ComfyUI's reading: what is no number below `count` is left out.
// Without any number all things are chosen.
std::vector<std::int64_t> chosen_things(const std::string& text, std::int64_t count);

}  // namespace heddle::detection
