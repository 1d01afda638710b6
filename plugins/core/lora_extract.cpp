#include "lora_extract.h"

#include <Spectra/SymEigsSolver.h>
#include <Eigen/Eigenvalues>
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <optional>
#include <random>

namespace heddle::loaders {
namespace {

using Eigen::Index;
using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Columns = Eigen::MatrixXd;  // vectors side by side

constexpr double kQuantile = 0.99;
constexpr Index kSmallSide = 256;  // up to here all singular vectors are found about as fast
constexpr double kTolerance = 1e-8;
constexpr Index kMostRestarts = 200;
constexpr double kNothingLeft = 1e-12;  // of the sum of squares: f32 does not know more

// x -> A^T A x, whose eigenvectors are the right singular vectors of A.
class Gram {
 public:
  using Scalar = double;
  explicit Gram(const Matrix& a) : a_(a) {}
  Index rows() const { return a_.cols(); }
  Index cols() const { return a_.cols(); }
  void perform_op(const double* x, double* y) const {
    product_.noalias() = a_ * Eigen::Map<const Eigen::VectorXd>(x, cols());
    Eigen::Map<Eigen::VectorXd>(y, rows()).noalias() = a_.transpose() * product_;
  }

 private:
  const Matrix& a_;
  mutable Eigen::VectorXd product_;
};

// `given` at right angles to each other, in their order and of length 1, and behind them others,
// until there are `count`. Of what is multiplied by nothing any will do, but the same ones each
// time.
Columns at_right_angles(const Columns& given, Index count) {
  Columns all(given.rows(), count);
  std::mt19937_64 numbers(1);
  for (Index k = 0; k < count; ++k) {
    Eigen::VectorXd one(given.rows());
    if (k < given.cols() && given.col(k).squaredNorm() > 0.0)
      one = given.col(k).normalized();
    else
      for (double& number : one) number = double(numbers() >> 11) * 0x1p-52 - 1.0;
    for (int twice = 0; twice < 2; ++twice) {
      one -= all.leftCols(k) * (all.leftCols(k).transpose() * one);
      one.normalize();
    }
    all.col(k) = one;
  }
  return all;
}

// By Lanczos's iteration, which reads the matrix some dozens of times instead of taking it apart.
// Nothing where it does not come to an end: singular values that lie close together.
std::optional<Columns> by_iteration(const Matrix& a, Index rank) {
  Gram gram(a);
  Spectra::SymEigsSolver<Gram> solver(gram, rank, std::min(a.cols(), 2 * rank + 20));
  solver.init();
  solver.compute(Spectra::SortRule::LargestAlge, kMostRestarts, kTolerance);
  const Columns found = solver.eigenvectors();
  if (found.cols() == rank) return found;
  const double all = a.squaredNorm(), kept = found.cols() == 0 ? 0.0 : (a * found).squaredNorm();
  if (all - kept > kNothingLeft * all) return std::nullopt;
  return at_right_angles(found, rank);
}

// By the products of all rows, or all columns, with each other: of those of the shorter side, which
// are the fewer. What these lose of small singular values lies under 1e-8 of the largest, which the
// factors' single precision does not know.
Columns by_products(const Matrix& a, Index rank) {
  const bool is_wide = a.rows() < a.cols();
  const Index side = std::min(a.rows(), a.cols());
  Columns products = Columns::Zero(side, side);
  if (is_wide)
    products.selfadjointView<Eigen::Lower>().rankUpdate(a);
  else
    products.selfadjointView<Eigen::Lower>().rankUpdate(a.transpose());
  const Eigen::SelfAdjointEigenSolver<Columns> solver(products);
  const Columns largest = solver.eigenvectors().rightCols(rank).rowwise().reverse();
  return is_wide ? at_right_angles(a.transpose() * largest, rank) : largest;
}

Columns right_vectors(const Matrix& a, Index rank) {
  const Index side = std::min(a.rows(), a.cols());
  if (side > kSmallSide && rank <= side / 4)
    if (std::optional<Columns> found = by_iteration(a, rank)) return *std::move(found);
  return by_products(a, rank);
}

void fix_signs(Columns& vectors) {
  for (Index k = 0; k < vectors.cols(); ++k) {
    Index largest = 0;
    vectors.col(k).cwiseAbs().maxCoeff(&largest);
    if (vectors(largest, k) < 0) vectors.col(k) *= -1.0;
  }
}

// As torch.quantile: between two numbers along the line.
float quantile(std::vector<float> numbers, double share) {
  const double place = share * double(numbers.size() - 1);
  const auto below = numbers.begin() + std::ptrdiff_t(place);
  std::nth_element(numbers.begin(), below, numbers.end());
  if (below + 1 == numbers.end()) return *below;
  const float above = *std::min_element(below + 1, numbers.end());
  return float(*below + (place - std::floor(place)) * (double(above) - *below));
}

void limit(LoraFactors& factors) {
  std::vector<float> all = factors.up;
  all.insert(all.end(), factors.down.begin(), factors.down.end());
  const float high = quantile(std::move(all), kQuantile);
  for (std::vector<float>* numbers : {&factors.up, &factors.down})
    for (float& number : *numbers) number = std::min(std::max(number, -high), high);
}

}  // namespace

std::vector<std::uint8_t> half_bytes(std::span<const float> numbers) {
  static_assert(std::endian::native == std::endian::little);
  std::vector<std::uint8_t> bytes(numbers.size() * 2);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const Eigen::half half(numbers[i]);
    std::memcpy(&bytes[i * 2], &half.x, 2);
  }
  return bytes;
}

LoraFactors extract_lora(std::span<const float> matrix, std::int64_t rows, std::int64_t columns,
                         std::int64_t rank) {
  LoraFactors factors{std::min({rank, rows, columns}), {}, {}};
  factors.up.resize(std::size_t(rows * factors.rank));
  factors.down.resize(std::size_t(factors.rank * columns));
  using Floats = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  Matrix a = Eigen::Map<const Floats>(matrix.data(), rows, columns).cast<double>();
  const double size = a.cwiseAbs().maxCoeff();
  if (size == 0.0) return factors;
  a /= size;
  Columns vectors = right_vectors(a, factors.rank);
  fix_signs(vectors);
  const Columns products = size * (a * vectors);
  Eigen::Map<Floats>(factors.up.data(), rows, factors.rank) = products.cast<float>();
  Eigen::Map<Floats>(factors.down.data(), factors.rank, columns) =
      vectors.transpose().cast<float>();
  limit(factors);
  return factors;
}

}  // namespace heddle::loaders
