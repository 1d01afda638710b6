#include "engine/memory/reservation.h"

#include <array>
#include <utility>

#include "engine/memory/ledger.h"

namespace heddle::engine {

std::string_view memory_kind_name(MemoryKind kind) {
  static constexpr std::array<std::string_view, kMemoryKinds> kNames{
      "weights", "staging ring", "activations",    "values",
      "staging", "workspaces",   "captured graphs"};
  return kNames[std::size_t(kind)];
}

// ---- claims ----

Reservation::Reservation(Reservation&& other) noexcept
    : ledger_(std::exchange(other.ledger_, nullptr)), left_(std::exchange(other.left_, 0)) {}

Reservation& Reservation::operator=(Reservation&& other) noexcept {
  if (this == &other) return *this;
  release();
  ledger_ = std::exchange(other.ledger_, nullptr);
  left_ = std::exchange(other.left_, 0);
  return *this;
}

void Reservation::give_back() {
  if (left_ > 0) ledger_->unclaim(left_);
  ledger_ = nullptr;
  left_ = 0;
}

// ---- tags ----

TaggedBytes::TaggedBytes(Ledger& ledger, MemoryTag tag, std::uint64_t bytes)
    : ledger_(&ledger), holder_(tag), bytes_(bytes) {
  ledger.tag(tag, bytes);
}

TaggedBytes::TaggedBytes(TaggedBytes&& other) noexcept
    : ledger_(std::exchange(other.ledger_, nullptr)),
      holder_(other.holder_),
      bytes_(other.bytes_) {}

TaggedBytes& TaggedBytes::operator=(TaggedBytes&& other) noexcept {
  if (this == &other) return *this;
  end();
  ledger_ = std::exchange(other.ledger_, nullptr);
  holder_ = other.holder_;
  bytes_ = other.bytes_;
  return *this;
}

void TaggedBytes::end() {
  if (ledger_ != nullptr) ledger_->untag(holder_, bytes_);
  ledger_ = nullptr;
}

void TaggedBytes::end(std::uint64_t bytes) {
  if (ledger_ == nullptr) return;
  ledger_->untag(holder_, bytes);
  bytes_ -= bytes;
}

void TaggedBytes::add(TaggedBytes&& other) {
  if (ledger_ == nullptr) {
    *this = std::move(other);
  } else if (other.ledger_ != nullptr) {
    bytes_ += other.bytes_;
    other.ledger_ = nullptr;
  }
}

// ---- taken bytes ----

TakenBytes::TakenBytes(TakenBytes&& other) noexcept
    : ledger_(std::exchange(other.ledger_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      tagged_(std::move(other.tagged_)) {}

TakenBytes& TakenBytes::operator=(TakenBytes&& other) noexcept {
  if (this == &other) return *this;
  give_back();
  ledger_ = std::exchange(other.ledger_, nullptr);
  bytes_ = std::exchange(other.bytes_, 0);
  tagged_ = std::move(other.tagged_);
  return *this;
}

void TakenBytes::tag(MemoryTag tag) {
  if (ledger_ != nullptr) tagged_ = TaggedBytes(*ledger_, tag, bytes_);
}

void TakenBytes::give_back() {
  tagged_.end();
  if (bytes_ > 0) ledger_->give_back(std::exchange(bytes_, 0));
}

void TakenBytes::give_back(std::uint64_t bytes) {
  tagged_.end(bytes);
  bytes_ -= bytes;
  if (bytes > 0) ledger_->give_back(bytes);
}

void TakenBytes::give_back_refused() {
  tagged_.end();
  if (bytes_ > 0) ledger_->give_back_refused(std::exchange(bytes_, 0));
}

void TakenBytes::add(TakenBytes&& other) {
  if (ledger_ == nullptr) ledger_ = other.ledger_;
  bytes_ += std::exchange(other.bytes_, 0);
  tagged_.add(std::move(other.tagged_));
}

}  // namespace heddle::engine
