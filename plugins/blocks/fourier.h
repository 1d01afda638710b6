// plugins/blocks/fourier.h - the discrete Fourier transform. Pure; any thread.
#pragma once

#include <complex>
#include <span>

namespace heddle::blocks {

// In place; of 2^n numbers. By Cooley and Tukey, 1965.
void fourier_transform(std::span<std::complex<double>> x);

}  // namespace heddle::blocks
