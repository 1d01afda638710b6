#include "lora_forms.h"

#include <Eigen/LU>
#include <algorithm>
#include <limits>

namespace heddle::loaders {
namespace {

using Eigen::Index;
using FormMatrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using FormRows = Eigen::Map<FormMatrix>;

// A tensor as a matrix of its first axis and all others.
struct FormFactor {
  FormMatrix values;
  std::vector<std::int64_t> shape;

  std::int64_t below(std::size_t axes) const {
    std::int64_t count = 1;
    for (std::size_t axis = axes; axis < shape.size(); ++axis) count *= shape[axis];
    return count;
  }
};

// The rows that a part of a module has, among all of the module's.
struct FormPlace {
  Index first = 0, all_rows = 0;
  Index columns = 0;  // numbers of a row that belong to one input, along axis 1: of filters several
};

class Form {
 public:
  Form(const LoraFile& lora, std::string name, const LoraModule& module, double strength)
      : file_(lora.file), name_(std::move(name)), module_(module), strength_(float(strength)) {}

  bool has(const char* factor) const { return module_.factors.count(factor) != 0; }
  bool is_rotation() const { return has("oft_blocks"); }
  bool is_butterfly() const {
    return is_rotation() && file_.info(module_.factors.at("oft_blocks")).rank == 4;
  }
  bool scales_rows(Index all_rows) const {
    return has("magnitude") || file_.size(module_.factors.at("dora_scale"), 0) == all_rows;
  }
  bool is_decomposed() const { return has("dora_scale") || has("magnitude"); }

  // FormRows of the whole difference, where it is one that no weight is needed for.
  std::optional<FormMatrix> difference() const;
  void apply(const FormPlace& place, FormRows weight) const;
  // Throws where the module cannot be one of these parts.
  void check_rows(const FormPlace& place, Index rows, Index width, bool is_alone) const;

 private:
  FormFactor read(const std::string& tensor) const;
  FormFactor factor(const char* name) const;
  float alpha_over(std::int64_t rank) const;
  FormMatrix middle(const FormFactor& t, const FormMatrix& a, const FormMatrix& b) const;
  FormMatrix half_hadamard(const char* a, const char* b, const char* t) const;
  FormMatrix kronecker() const;
  FormMatrix rotated(const FormPlace& place, const FormRows& weight) const;
  FormMatrix butterfly(const FormRows& weight) const;
  std::vector<FormMatrix> rotations(const FormFactor& blocks, Index count, Index size) const;
  FormMatrix glora(const FormPlace& place, const FormRows& weight) const;
  void decompose(const FormPlace& place, FormRows weight, const FormMatrix& change) const;
  [[noreturn]] void misfit(const std::string& reason) const {
    throw Error(HEDDLE_INVALID_ARGUMENT,
                file_.path() + ": the module '" + name_ + "' " + reason +
                    ". The file is damaged, or was made for another model.");
  }

  Checkpoint file_;
  std::string name_;
  LoraModule module_;
  float strength_;
};

FormFactor Form::read(const std::string& tensor) const {
  const heddle_tensor_info& info = file_.info(tensor);
  FormFactor factor;
  factor.shape.assign(info.shape, info.shape + info.rank);
  if (factor.shape.empty()) factor.shape.push_back(1);
  std::vector<double> numbers(std::size_t(factor.below(0)));
  check(service<heddle_checkpoint_service>().numbers(
      file_.raw(), tensor.c_str(), std::uint32_t(numbers.size()), numbers.data()));
  factor.values.resize(factor.shape[0], factor.below(1));
  std::transform(numbers.begin(), numbers.end(), factor.values.data(),
                 [](double number) { return float(number); });
  return factor;
}

FormFactor Form::factor(const char* name) const {
  const auto found = module_.factors.find(name);
  if (found == module_.factors.end())
    misfit("has no '" + std::string(name) + "', without which its others mean nothing");
  return read(found->second);
}

float Form::alpha_over(std::int64_t rank) const {
  return module_.alpha.empty() ? 1.0f : float(file_.number(module_.alpha) / double(rank));
}

// sum over (i, j) of t[i, j, ...] a[i, p] b[j, r]: (p, r ...).
FormMatrix Form::middle(const FormFactor& t, const FormMatrix& a, const FormMatrix& b) const {
  if (t.shape.size() < 2 || t.shape[0] != a.rows() || t.shape[1] != b.rows())
    misfit("has a middle factor that does not fit the others");
  const Index inner = t.below(2), right = b.cols();
  FormMatrix halved = FormMatrix::Zero(a.rows(), right * inner);
  for (Index i = 0; i < a.rows(); ++i) {
    const FormRows slice(const_cast<float*>(t.values.row(i).data()), b.rows(), inner);
    FormRows to(halved.row(i).data(), right, inner);
    to.noalias() = b.transpose() * slice;
  }
  return a.transpose() * halved;
}

FormMatrix Form::half_hadamard(const char* a, const char* b, const char* t) const {
  const FormFactor left = factor(a), right = factor(b);
  if (has(t)) return middle(factor(t), left.values, right.values);
  if (left.values.cols() != right.values.rows()) misfit("has factors of different ranks");
  return left.values * right.values;
}

FormMatrix Form::kronecker() const {
  std::int64_t rank = 0;
  const auto side = [&](const char* whole, const char* a, const char* b, const char* t) {
    if (has(whole)) return factor(whole);
    const FormFactor left = factor(a), right = factor(b);
    rank = right.shape[0];
    FormFactor made;
    if (t != nullptr && has(t)) {
      const FormFactor between = factor(t);
      made.values = middle(between, left.values, right.values);
      made.shape = {left.below(1), right.below(1)};
      made.shape.insert(made.shape.end(), between.shape.begin() + 2, between.shape.end());
    } else {
      if (left.values.cols() != right.values.rows()) misfit("has factors of different ranks");
      made.values = left.values * right.values;
      made.shape = {made.values.rows(), made.values.cols()};
    }
    return made;
  };
  const FormFactor first = side("lokr_w1", "lokr_w1_a", "lokr_w1_b", nullptr),
                   second = side("lokr_w2", "lokr_w2_a", "lokr_w2_b", "lokr_t2");
  const FormMatrix &l = first.values, &r = second.values;
  FormMatrix product(l.rows() * r.rows(), l.cols() * r.cols());
  for (Index i = 0; i < l.rows(); ++i)
    for (Index j = 0; j < l.cols(); ++j)
      product.block(i * r.rows(), j * r.cols(), r.rows(), r.cols()) = l(i, j) * r;
  return rank > 0 ? FormMatrix(product * alpha_over(rank)) : product;
}

std::optional<FormMatrix> Form::difference() const {
  if (has("hada_w1_a")) {
    const FormMatrix first = half_hadamard("hada_w1_a", "hada_w1_b", "hada_t1"),
                     second = half_hadamard("hada_w2_a", "hada_w2_b", "hada_t2");
    if (first.rows() != second.rows() || first.cols() != second.cols())
      misfit("has two products of different sizes");
    const std::int64_t rank = file_.size(module_.factors.at("hada_w1_b"), 0);
    return FormMatrix(first.cwiseProduct(second) * alpha_over(rank));
  }
  if (has("lokr_w1") || has("lokr_w1_a") || has("lokr_w2") || has("lokr_w2_a")) return kronecker();
  if (module_.up.empty()) return std::nullopt;
  const FormFactor up = read(module_.up), down = read(module_.down);
  const float scale = alpha_over(down.shape[0]);
  if (has("lora_mid")) {
    const FormMatrix turned = up.values.transpose();
    return FormMatrix(middle(factor("lora_mid"), turned, down.values) * scale);
  }
  if (up.values.cols() != down.values.rows()) misfit("has factors of different ranks");
  return FormMatrix(up.values * down.values * scale);
}

// Cayley's transform of each block: (I + Q)(I - Q)^-1 of Q = B - B^T, whose norm over all blocks is
// held to alpha.
std::vector<FormMatrix> Form::rotations(const FormFactor& blocks, Index count, Index size) const {
  const float limit = module_.alpha.empty() ? 0.0f : float(file_.number(module_.alpha));
  std::vector<FormMatrix> all;
  double squares = 0;
  for (Index k = 0; k < count; ++k) {
    const FormRows block(const_cast<float*>(blocks.values.data()) + k * size * size, size, size);
    all.push_back(block - block.transpose());
    squares += double(all.back().squaredNorm());
  }
  const float norm = float(std::sqrt(squares)) + 1e-8f;
  const FormMatrix one = FormMatrix::Identity(size, size);
  for (FormMatrix& q : all) {
    if (limit > 0 && norm > limit) q *= limit / norm;
    const FormMatrix divided = (one - q).inverse();
    q = (one + q) * divided;
  }
  return all;
}

FormMatrix Form::rotated(const FormPlace& place, const FormRows& weight) const {
  const FormFactor blocks = factor("oft_blocks");
  const Index size = blocks.shape[1];
  const std::vector<FormMatrix> all = rotations(blocks, blocks.shape[0], size);
  FormMatrix change(weight.rows(), weight.cols());
  for (Index row = 0; row < weight.rows(); row += size) {
    const FormMatrix r =
        all[std::size_t((place.first + row) / size)] - FormMatrix::Identity(size, size);
    change.middleRows(row, size).noalias() =
        strength_ * (r.transpose() * weight.middleRows(row, size));
  }
  return change;
}

// Stage i pairs rows that are 2^i half blocks apart, and turns blocks of what stands together then.
FormMatrix Form::butterfly(const FormRows& weight) const {
  const FormFactor blocks = factor("oft_blocks");
  const Index stages = blocks.shape[0], count = blocks.shape[1], size = blocks.shape[2];
  const std::vector<FormMatrix> all = rotations(blocks, stages * count, size);
  FormMatrix turned = weight, mixed(weight.rows(), weight.cols());
  for (Index stage = 0; stage < stages; ++stage) {
    const Index apart = (Index(1) << stage) * (size / 2);
    const auto place_of = [&](Index row) {
      const Index group = row / (2 * apart), half = row % (2 * apart) / apart, at = row % apart;
      return group * 2 * apart + at * 2 + half;
    };
    for (Index row = 0; row < weight.rows(); ++row) mixed.row(place_of(row)) = turned.row(row);
    for (Index k = 0; k < count; ++k) {
      FormMatrix r = all[std::size_t(stage * count + k)];
      if (strength_ != 1) r = r * strength_ + FormMatrix::Identity(size, size) * (1 - strength_);
      mixed.middleRows(k * size, size) = (r * mixed.middleRows(k * size, size)).eval();
    }
    for (Index row = 0; row < weight.rows(); ++row) turned.row(row) = mixed.row(place_of(row));
  }
  if (has("rescale")) {
    const FormFactor scale = factor("rescale");
    for (Index row = 0; row < turned.rows(); ++row)
      turned.row(row) *= scale.values.data()[scale.values.size() == 1 ? 0 : row];
  }
  return turned - weight;
}

// W A1 A2 + B1 B2; in files of LyCORIS before 2.0 W A2 A1 + B2 B1. Of filters A is of the inputs.
FormMatrix Form::glora(const FormPlace& place, const FormRows& weight) const {
  const FormFactor a1 = factor("a1"), a2 = factor("a2"), b1 = factor("b1"), b2 = factor("b2");
  const auto rank_of_old = [&] {
    return b2.values.cols() == b1.values.rows() && b1.values.rows() == a1.values.rows() &&
           a1.values.rows() == a2.values.cols();
  };
  const bool is_new = b2.values.rows() == b1.values.cols() &&
                      b1.values.cols() == a1.values.cols() && a1.values.cols() == a2.values.rows();
  const bool is_old =
      rank_of_old() &&
      !(is_new && !(a2.values.rows() == place.all_rows && place.all_rows == weight.cols()));
  if (!is_old && !is_new) misfit("has factors of GLoRA that do not fit together");
  const FormMatrix& before = is_old ? a2.values : a1.values;
  const FormMatrix& behind = is_old ? a1.values : a2.values;
  const FormMatrix added =
      is_old ? FormMatrix(b2.values * b1.values) : FormMatrix(b1.values * b2.values);
  const Index inner = place.columns, inputs = weight.cols() / inner;
  if (before.rows() != inputs || behind.cols() != inputs || added.rows() != place.all_rows ||
      added.cols() != weight.cols())
    misfit("has factors of GLoRA of other sizes than the weight");
  FormMatrix change = added.middleRows(place.first, weight.rows());
  const FormMatrix both = before * behind;
  for (Index row = 0; row < weight.rows(); ++row) {
    const FormRows filters(const_cast<float*>(weight.row(row).data()), inputs, inner);
    FormRows to(change.row(row).data(), inputs, inner);
    to += both.transpose() * filters;
  }
  return change * alpha_over(is_old ? a1.values.rows() : a2.values.rows());
}

// The sum at the magnitudes that the file gives: of each output, by the norm of the weight as it
// was, or of each input, by that of the sum; PEFT's "magnitude" is of outputs, by that of the sum.
void Form::decompose(const FormPlace& place, FormRows weight, const FormMatrix& change) const {
  constexpr float kEpsilon = std::numeric_limits<float>::epsilon();
  const FormFactor scale = factor(has("magnitude") ? "magnitude" : "dora_scale");
  FormMatrix sum = weight + change;
  if (scales_rows(place.all_rows)) {
    for (Index row = 0; row < sum.rows(); ++row) {
      const float norm = has("magnitude") ? sum.row(row).norm() : weight.row(row).norm();
      sum.row(row) *= scale.values.data()[place.first + row] / (norm + kEpsilon);
    }
  } else {
    for (Index column = 0; column < sum.cols(); column += place.columns) {
      auto filters = sum.middleCols(column, place.columns);
      filters *= scale.values.data()[column / place.columns] / (filters.norm() + kEpsilon);
    }
  }
  if (strength_ == 1)
    weight = sum;
  else
    weight += strength_ * (sum - weight);
}

void Form::apply(const FormPlace& place, FormRows weight) const {
  FormMatrix change;
  if (const std::optional<FormMatrix> whole = difference())
    change = whole->middleRows(place.first, weight.rows());
  else if (is_butterfly())
    change = butterfly(weight);
  else
    change = is_rotation() ? rotated(place, weight) : glora(place, weight);
  if (is_decomposed())
    decompose(place, weight, change);
  else
    weight += strength_ * change;
}

void Form::check_rows(const FormPlace& place, Index rows, Index width, bool is_alone) const {
  const auto refuse_parts = [&](const char* what) {
    throw Error(HEDDLE_UNSUPPORTED,
                file_.path() + ": the module '" + name_ + "' is of " + what +
                    " over rows that stand in several tensors of this model. Use a file of the "
                    "model in the names that the LoRA was made for.");
  };
  if (is_decomposed()) {
    const std::int64_t count = factor(has("magnitude") ? "magnitude" : "dora_scale").values.size();
    const bool by_rows = scales_rows(place.all_rows);
    if (count != (by_rows ? place.all_rows : width / place.columns))
      misfit("has " + std::to_string(count) + " magnitudes for a weight of " +
             std::to_string(place.all_rows) + " rows of " + std::to_string(width));
    if (!by_rows && !is_alone) refuse_parts("DoRA by inputs");
  }
  if (is_rotation()) {
    const FormFactor blocks = factor("oft_blocks");
    const std::size_t axis = is_butterfly() ? 1 : 0;
    const std::int64_t size = blocks.shape.back();
    if (blocks.shape.size() != axis + 3 || blocks.shape[axis + 1] != size || size < 1 ||
        blocks.shape[axis] * size != place.all_rows)
      misfit("has rotations for another number of rows than " + std::to_string(place.all_rows));
    if (is_butterfly() && (size % 2 != 0 || place.all_rows % ((size / 2) << blocks.shape[0]) != 0))
      misfit("has stages of rotations that " + std::to_string(place.all_rows) +
             " rows do not divide into");
    if (!is_alone && (is_butterfly() || place.first % size != 0 || rows % size != 0))
      refuse_parts("rotations");
    return;
  }
  if (has("a1")) return;  // held by glora()
  const std::optional<FormMatrix> whole = difference();
  if (!whole) misfit("has magnitudes alone, and nothing that changes the weight");
  if (whole->rows() != place.all_rows || whole->cols() != width)
    misfit("is (" + std::to_string(whole->rows()) + ", " + std::to_string(whole->cols()) +
           "), the weight (" + std::to_string(place.all_rows) + ", " + std::to_string(width) + ")");
}

}  // namespace

bool has_form(const LoraModule& module) {
  return std::ranges::any_of(module.factors,
                             [](const auto& each) { return each.first != "reshape_weight"; });
}

std::vector<WeightChange> form_changes(const LoraFile& lora, const std::string& name,
                                       const LoraModule& module, const std::vector<Part>& rows,
                                       const Checkpoint& model, double strength) {
  const auto form = std::make_shared<const Form>(lora, name, module, strength);
  const auto end_of = [&](const Part& part) {
    return part.end == HEDDLE_ALL_ROWS ? model.size(part.tensor, 0) : part.end;
  };
  Index all_rows = 0, first = 0;
  for (const Part& part : rows) all_rows += end_of(part) - part.begin;
  std::vector<WeightChange> changes;
  for (const Part& part : rows) {
    const heddle_tensor_info& info = model.info(part.tensor);
    FormPlace place{first, all_rows, 1};
    Index width = 1;
    for (std::uint32_t axis = 1; axis < info.rank; ++axis) width *= info.shape[axis];
    for (std::uint32_t axis = 2; axis < info.rank; ++axis) place.columns *= info.shape[axis];
    form->check_rows(place, end_of(part) - part.begin, width, rows.size() == 1);
    changes.push_back({part,
                       name + " from " + std::to_string(first) + " at " + std::to_string(strength),
                       [form, place](std::int64_t count, std::int64_t columns, float* numbers) {
                         form->apply(place, FormRows(numbers, count, columns));
                       }});
    first += end_of(part) - part.begin;
  }
  return changes;
}

}  // namespace heddle::loaders
