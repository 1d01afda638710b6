// A vector that one thread makes longer while others read what is there: elements never move. An
// element may be read by whoever has learned of it, through a lock, from the thread that added it.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <memory>
#include <vector>

namespace heddle::engine {

template <class T>
class GrowingVector {
 public:
  // What is there from the start costs nothing more than in any vector.
  explicit GrowingVector(std::size_t count = 0)
      : first_(count), begin_(first_.data()), first_count_(count), size_(count) {}
  GrowingVector(const GrowingVector&) = delete;
  GrowingVector& operator=(const GrowingVector&) = delete;

  T& operator[](std::size_t i) { return i < first_count_ ? begin_[i] : added(i - first_count_); }
  const T& operator[](std::size_t i) const {
    return i < first_count_ ? begin_[i] : added(i - first_count_);
  }

  // For the one thread that adds.
  std::size_t size() const { return size_; }
  T& add(T value = T()) {
    reserve_one();
    T& made = added(size_ - first_count_);
    made = std::move(value);
    ++size_;
    return made;
  }
  // One more, as it is made by default: for what cannot be moved.
  T& add_empty() {
    reserve_one();
    return added(size_++ - first_count_);
  }

 private:
  // Chunk c holds kLeast << c elements.
  static constexpr std::size_t kLeast = 64, kChunks = 40;
  struct Place {
    std::size_t chunk, at;
  };
  static Place place_of(std::size_t i) {
    const std::size_t number = i + kLeast;
    const std::size_t chunk = std::size_t(std::bit_width(number)) - std::bit_width(kLeast);
    return {chunk, number - (kLeast << chunk)};
  }
  T& added(std::size_t i) const {
    const Place place = place_of(i);
    return chunks_[place.chunk][place.at];
  }
  void reserve_one() {
    const Place place = place_of(size_ - first_count_);
    if (chunks_[place.chunk] == nullptr)
      chunks_[place.chunk] = std::make_unique<T[]>(kLeast << place.chunk);
  }

  std::vector<T> first_;
  T* const begin_;                 // of first_, and how many they are: a vector would divide by the
  const std::size_t first_count_;  // size of T to tell
  std::size_t size_;
  std::array<std::unique_ptr<T[]>, kChunks> chunks_;
};

}  // namespace heddle::engine
