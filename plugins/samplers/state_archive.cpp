#include "state_archive.h"

#include <algorithm>
#include <bit>

namespace heddle::samplers {
namespace {

constexpr const char* kTensors = "tensors";
constexpr std::int64_t kNone = -1;

// As bits: what stands in a file as digits may be another number when it is read.
std::int64_t bits_of(double number) { return std::bit_cast<std::int64_t>(number); }

}  // namespace

Value StateArchive::whole_field(const std::string& key) const {
  Value found = from_.field(key.c_str());
  if (!found)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "the saved state of the sampler has no '" + key +
                    "': another version has written it. Run the workflow from the beginning.");
  return found;
}

std::int64_t StateArchive::number_of(const Tensor& tensor) {
  if (!tensor) return kNone;
  const auto same = [&](const Tensor& known) { return known.raw() == tensor.raw(); };
  const auto found = std::ranges::find_if(tensors_, same);
  const auto number = std::int64_t(found - tensors_.begin());
  if (found == tensors_.end()) tensors_.push_back(tensor);
  return number;
}

Tensor StateArchive::tensor_at(std::int64_t number) {
  if (number == kNone) return {};
  const Value all = whole_field(kTensors);
  tensors_.resize(all.count());
  if (number < 0 || std::size_t(number) >= tensors_.size())
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "the saved state of the sampler has " + std::to_string(tensors_.size()) +
                    " tensors, and names number " + std::to_string(number));
  Tensor& brought = tensors_[std::size_t(number)];
  if (!brought) {
    const Tensor saved = all.item(std::uint32_t(number)).as<Tensor>();
    brought = ctx_.upload(saved.shape(), saved.dtype(), saved.data<void>());
  }
  return brought;
}

void StateArchive::operator()(const std::string& key, Tensor& member) {
  if (reads_)
    member = tensor_at(field(key).as<std::int64_t>());
  else
    put(key, value_of(number_of(member)));
}

void StateArchive::operator()(const std::string& key, std::vector<Tensor>& member) {
  std::vector<std::int64_t> numbers;
  if (!reads_)
    for (const Tensor& tensor : member) numbers.push_back(number_of(tensor));
  (*this)(key, numbers);
  if (!reads_) return;
  member.clear();
  for (const std::int64_t number : numbers) member.push_back(tensor_at(number));
}

void StateArchive::operator()(const std::string& key, std::int64_t& member) {
  if (reads_)
    member = field(key).as<std::int64_t>();
  else
    put(key, value_of(std::int64_t(member)));
}

void StateArchive::operator()(const std::string& key, std::size_t& member) {
  auto number = std::int64_t(member);
  (*this)(key, number);
  if (number < 0)
    throw Error(HEDDLE_INVALID_ARGUMENT, "the saved state of the sampler has " +
                                             std::to_string(number) + " as its '" + key + "'");
  member = std::size_t(number);
}

void StateArchive::operator()(const std::string& key, bool& member) {
  std::int64_t number = member ? 1 : 0;
  (*this)(key, number);
  member = number != 0;
}

void StateArchive::operator()(const std::string& key, double& member) {
  std::int64_t bits = bits_of(member);
  (*this)(key, bits);
  member = std::bit_cast<double>(bits);
}

void StateArchive::operator()(const std::string& key, std::optional<double>& member) {
  std::vector<double> there;
  if (member) there.push_back(*member);
  (*this)(key, there);
  member = there.empty() ? std::nullopt : std::optional(there.front());
}

void StateArchive::operator()(const std::string& key, std::string& member) {
  if (reads_)
    member = field(key).as<std::string>();
  else
    put(key, value_of(member));
}

void StateArchive::operator()(const std::string& key, std::vector<std::int64_t>& member) {
  if (reads_) {
    const Value list = field(key);
    member.clear();
    for (std::uint32_t i = 0; i < list.count(); ++i)
      member.push_back(list.item(i).as<std::int64_t>());
    return;
  }
  std::vector<Value> items;
  for (const std::int64_t number : member) items.push_back(value_of(std::int64_t(number)));
  put(key, list_of(items));
}

void StateArchive::operator()(const std::string& key, std::vector<double>& member) {
  std::vector<std::int64_t> bits;
  for (const double number : member) bits.push_back(bits_of(number));
  (*this)(key, bits);
  member.clear();
  for (const std::int64_t of : bits) member.push_back(std::bit_cast<double>(of));
}

// In host memory, where they stay.
template <class Floats>
void StateArchive::floats(const std::string& key, Floats& member) {
  if (reads_) {
    const Tensor saved = field(key).as<Tensor>();
    if (saved.dtype() != HEDDLE_F32)
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  "the saved state of the sampler has a '" + key + "' that is not f32");
    const auto* data = saved.data<float>();
    member.assign(data, data + saved.count());
    return;
  }
  const Tensor copy = ctx_.make_host({std::int64_t(member.size())}, HEDDLE_F32);
  std::copy(member.begin(), member.end(), copy.data<float>());
  put(key, value_of(copy));
}
void StateArchive::operator()(const std::string& key, std::vector<float>& member) {
  floats(key, member);
}
void StateArchive::operator()(const std::string& key, std::pmr::vector<float>& member) {
  floats(key, member);
}

Value StateArchive::value() const {
  std::vector<Value> all;
  for (const Tensor& tensor : tensors_) all.push_back(value_of(tensor));
  Record whole = record_;
  return whole.set(kTensors, list_of(all)).value();
}

}  // namespace heddle::samplers
