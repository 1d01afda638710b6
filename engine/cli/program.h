// The program from its arguments to its exit code: reads the options from all of their sources,
// runs the command, and turns whatever is thrown into a message on stderr and an exit code.
#pragma once

#include <string>
#include <vector>

namespace heddle::cli {

// `arguments` without the program's name. Never throws.
int run_program(const std::vector<std::string>& arguments);

}  // namespace heddle::cli
