// The stack that the program and all of its threads have, however little `ulimit -s` leaves:
// kernels and the libraries under them keep blocks of numbers there.
#pragma once

#include <functional>

namespace heddle::cli {

// Runs the program on the calling thread, or where its stack is too small or cannot be relied on to
// grow (a limited address space) on another one, and returns what it returns. Threads that anybody
// starts from then on have a stack of the same size. To be called by main(), before there are
// threads. Throws engine::Error(out_of_memory) when there is no such thread to be had.
int with_enough_stack(const std::function<int()>& program);

}  // namespace heddle::cli
