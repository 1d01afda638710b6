// The modes of the conformance program besides test; each gives the exit code.
#pragma once

namespace heddle::conformance {

// Prints seconds and GFLOP/s or GB/s of every kernel on every case.
int bench();
// Prints seconds, TFLOP/s and GB/s of the best kernel at the sizes that image models of today have,
// one line of fixed form each.
int speed();
// Prints which kernels there are for which op, and on how many of its cases each fits.
int support();

}  // namespace heddle::conformance
