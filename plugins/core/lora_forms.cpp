#include "lora_forms.h"

#include <Eigen/LU>
#include <algorithm>
#include <charconv>
#include <iterator>
#include <limits>

#include "lora_form.h"

namespace heddle::loaders {

FormFactor Form::read(const std::string& tensor) const {
  FormFactor factor{{}, shape_of(tensor)};
  std::vector<double> numbers(std::size_t(count_below(factor.shape, 0)));
  check(service<heddle_checkpoint_service>().numbers(
      file_.raw(), tensor.c_str(), std::uint32_t(numbers.size()), numbers.data()));
  factor.values.resize(factor.shape[0], count_below(factor.shape, 1));
  std::transform(numbers.begin(), numbers.end(), factor.values.data(),
                 [](double number) { return float(number); });
  return factor;
}

float Form::alpha_over(std::int64_t rank) const {
  return module_.alpha.empty() ? 1.0f : float(file_.number(module_.alpha) / double(rank));
}

// sum over (i, j) of t[i, j, ...] a[i, p] b[j, r]: (p, r ...).
FormMatrix Form::middle(const FormFactor& t, const FormMatrix& a, const FormMatrix& b) const {
  constexpr Index kMostRows = 1024;  // of what is in between: of real files all
  const Index inner = count_below(t.shape, 2), right = b.cols();
  FormMatrix whole = FormMatrix::Zero(a.cols(), right * inner);
  for (Index first = 0; first < a.rows(); first += kMostRows) {
    const Index count = std::min(kMostRows, a.rows() - first);
    FormMatrix halved(count, right * inner);
    for (Index i = 0; i < count; ++i) {
      const FormRows slice(const_cast<float*>(t.values.row(first + i).data()), b.rows(), inner);
      FormRows to(halved.row(i).data(), right, inner);
      to.noalias() = b.transpose() * slice;
    }
    whole.noalias() += a.middleRows(first, count).transpose() * halved;
  }
  return whole;
}

FormMatrix Form::product(const char* a, const char* b, const char* t) const {
  const FormFactor left = factor(a), right = factor(b);
  if (has(t)) return middle(factor(t), left.values, right.values);
  return left.values * right.values;
}

FormMatrix Form::kronecker() const {
  std::int64_t rank = 0;
  const auto side = [&](const char* whole, const char* a, const char* b, const char* t) {
    if (has(whole)) return factor(whole).values;
    rank = shape_of(tensor_of(b))[0];
    return product(a, b, t);
  };
  const FormMatrix l = side("lokr_w1", "lokr_w1_a", "lokr_w1_b", nullptr),
                   r = side("lokr_w2", "lokr_w2_a", "lokr_w2_b", "lokr_t2");
  FormMatrix whole(l.rows() * r.rows(), l.cols() * r.cols());
  for (Index i = 0; i < l.rows(); ++i)
    for (Index j = 0; j < l.cols(); ++j)
      whole.block(i * r.rows(), j * r.cols(), r.rows(), r.cols()) = l(i, j) * r;
  return rank > 0 ? FormMatrix(whole * alpha_over(rank)) : whole;
}

std::optional<FormMatrix> Form::difference() const {
  if (has("hada_w1_a")) {
    const FormMatrix first = product("hada_w1_a", "hada_w1_b", "hada_t1"),
                     second = product("hada_w2_a", "hada_w2_b", "hada_t2");
    const std::int64_t rank = file_.size(module_.factors.at("hada_w1_b"), 0);
    return FormMatrix(first.cwiseProduct(second) * alpha_over(rank));
  }
  if (is_kronecker()) return kronecker();
  if (module_.up.empty()) return std::nullopt;
  const FormFactor up = read(module_.up), down = read(module_.down);
  const float scale = alpha_over(down.shape[0]);
  if (has("lora_mid")) {
    const FormMatrix turned = up.values.transpose();
    return FormMatrix(middle(factor("lora_mid"), turned, down.values) * scale);
  }
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

// W A1 A2 + B1 B2. Of filters A is of the inputs.
FormMatrix Form::glora(const FormPlace& place, const FormRows& weight) const {
  const FormFactor a1 = factor("a1"), a2 = factor("a2"), b1 = factor("b1"), b2 = factor("b2");
  const bool is_old = is_old_glora(place, weight.cols());
  const FormMatrix& before = is_old ? a2.values : a1.values;
  const FormMatrix& behind = is_old ? a1.values : a2.values;
  const FormMatrix added =
      is_old ? FormMatrix(b2.values * b1.values) : FormMatrix(b1.values * b2.values);
  const Index inner = place.columns, inputs = weight.cols() / inner;
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

namespace {

// As few digits as tell it from every other number.
std::string exact_text(double number) {
  char text[32];
  return {text, std::to_chars(text, std::end(text), number).ptr};
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
    if (std::count(info.shape, info.shape + info.rank, 0) > 0)
      throw Error(HEDDLE_INVALID_ARGUMENT, model.path() + ": the tensor '" + part.tensor +
                                               "' has no numbers that the LoRA's module '" + name +
                                               "' could change. Use another file of the model.");
    FormPlace place{first, all_rows, 1};
    Index width = 1;
    for (std::uint32_t axis = 1; axis < info.rank; ++axis) width *= info.shape[axis];
    for (std::uint32_t axis = 2; axis < info.rank; ++axis) place.columns *= info.shape[axis];
    form->check_rows(place, end_of(part) - part.begin, width, rows.size() == 1);
    changes.push_back({part,
                       name + " from " + std::to_string(first) + " at " + exact_text(strength),
                       [form, place](std::int64_t count, std::int64_t columns, float* numbers) {
                         form->apply(place, FormRows(numbers, count, columns));
                       }});
    first += end_of(part) - part.begin;
  }
  return changes;
}

}  // namespace heddle::loaders
