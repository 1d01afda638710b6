// Nothing but a reason for CMake to precompile the header that all tests share: main.cpp cannot use
// it.
