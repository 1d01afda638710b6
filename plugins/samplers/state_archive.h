// The state of a run between two steps, on its way into a value (heddle/resume.hpp) and back. Each
// part of a run lists its members in one function, archive(), which writes or reads them as the
// archive does, so that the two agree. One call's thread.
#pragma once

#include <cstdint>
#include <memory_resource>
#include <optional>
#include <string>
#include <vector>

#include <heddle/node.hpp>

namespace heddle::samplers {

class StateArchive {
 public:
  explicit StateArchive(Context& ctx) : ctx_(ctx) {}  // writes
  StateArchive(Context& ctx, const Value& from) : ctx_(ctx), reads_(true), from_(from) {}

  bool reads() const { return reads_; }

  // Keys within have this before them: of a part that has members of the same names as another one.
  template <class Archive>
  void under(const std::string& name, Archive&& archive) {
    prefix_ += name;
    archive(*this);
    prefix_.resize(prefix_.size() - name.size());
  }

  // Each member under a key of its own. What is read replaces what was there, bit by bit the same;
  // throws invalid_argument where the value has no such key, or another kind of content.
  void operator()(const std::string& key, Tensor& member);  // of any device; may be empty
  void operator()(const std::string& key, std::vector<Tensor>& member);
  void operator()(const std::string& key, std::int64_t& member);
  void operator()(const std::string& key, std::size_t& member);
  void operator()(const std::string& key, bool& member);
  void operator()(const std::string& key, double& member);
  void operator()(const std::string& key, std::optional<double>& member);
  void operator()(const std::string& key, std::string& member);
  void operator()(const std::string& key, std::vector<std::int64_t>& member);
  void operator()(const std::string& key, std::vector<double>& member);
  void operator()(const std::string& key, std::vector<float>& member);
  void operator()(const std::string& key, std::pmr::vector<float>& member);

  // What was written.
  Value value() const;

 private:
  Value field(const std::string& key) const { return whole_field(prefix_ + key); }
  Value whole_field(const std::string& key) const;
  void put(const std::string& key, Value value) { record_.set(prefix_ + key, std::move(value)); }
  // Tensors that several members share are kept once, and shared again when they are read.
  std::int64_t number_of(const Tensor& tensor);
  Tensor tensor_at(std::int64_t number);
  template <class Floats>
  void floats(const std::string& key, Floats& member);

  Context& ctx_;
  const bool reads_ = false;
  const Value from_;
  Record record_;
  std::string prefix_;
  std::vector<Tensor> tensors_;
};

}  // namespace heddle::samplers
