// heddle, the program. Everything it does is in engine/cli, over the facade <heddle/engine.hpp>.
#include "engine/cli/program.h"

int main(int argc, char** argv) {
  return heddle::cli::run_program({argv + (argc > 0 ? 1 : 0), argv + argc});
}
