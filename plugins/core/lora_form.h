// One module of a LoRA file that is no plain product, see lora_forms.h: its factors, whether they
// fit rows of a model (lora_form_sizes.cpp), and what they do to these (lora_forms.cpp).
#pragma once

#include <Eigen/Core>
#include <optional>
#include <string>
#include <vector>

#include "lora_file.h"

namespace heddle::loaders {

using Eigen::Index;
using FormMatrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using FormRows = Eigen::Map<FormMatrix>;

using FormShape = std::vector<std::int64_t>;

// Numbers below one of so many first axes.
std::int64_t count_below(const FormShape& shape, std::size_t axes);

// Rows and columns of a matrix.
struct FormSize {
  Index rows = 0, columns = 0;

  // Of a tensor as a matrix of its first axis and all others.
  static FormSize of(const FormShape& shape) { return {shape[0], count_below(shape, 1)}; }
  std::string text() const {
    return "(" + std::to_string(rows) + ", " + std::to_string(columns) + ")";
  }
  bool operator==(const FormSize&) const = default;
};

// A tensor as such a matrix.
struct FormFactor {
  FormMatrix values;
  FormShape shape;
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

  bool has(const char* factor) const {
    return factor != nullptr && module_.factors.count(factor) != 0;
  }
  bool is_kronecker() const {
    return has("lokr_w1") || has("lokr_w1_a") || has("lokr_w2") || has("lokr_w2_a");
  }
  bool is_rotation() const { return has("oft_blocks"); }
  bool is_butterfly() const {
    return is_rotation() && file_.info(module_.factors.at("oft_blocks")).rank == 4;
  }
  bool scales_rows(Index all_rows) const {
    return has("magnitude") || file_.size(module_.factors.at("dora_scale"), 0) == all_rows;
  }
  bool is_decomposed() const { return has("dora_scale") || has("magnitude"); }

  // What check_rows() has held to fit is multiplied without looking again.
  void apply(const FormPlace& place, FormRows weight) const;
  // Throws where the module cannot be one of these parts.
  void check_rows(const FormPlace& place, Index rows, Index width, bool is_alone) const;

 private:
  const std::string& tensor_of(const char* factor) const;
  FormShape shape_of(const std::string& tensor) const;
  FormSize size_of(const std::string& tensor) const { return FormSize::of(shape_of(tensor)); }
  FormFactor read(const std::string& tensor) const;
  FormFactor factor(const char* name) const { return read(tensor_of(name)); }
  FormSize product_size(FormSize a, FormSize b, const char* t) const;
  // Of the whole difference, by the shapes of its factors; where no weight is needed for it.
  std::optional<FormSize> difference_size() const;
  std::optional<FormMatrix> difference() const;
  void check_rotations(const FormPlace& place) const;
  bool is_old_glora(const FormPlace& place, Index width) const;
  float alpha_over(std::int64_t rank) const;
  FormMatrix middle(const FormFactor& t, const FormMatrix& a, const FormMatrix& b) const;
  FormMatrix product(const char* a, const char* b, const char* t) const;
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

}  // namespace heddle::loaders
