// The modes of the conformance program besides test; each gives the exit code.
#pragma once

namespace heddle::conformance {

// Prints seconds and GFLOP/s or GB/s of every kernel on every case.
int bench();
// Prints which kernels there are for which op, and on how many of its cases each fits.
int support();

}  // namespace heddle::conformance
