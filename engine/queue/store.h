// The file of a queue: opened, checked, brought to the present schema, and written by any number of
// threads. What several of them write at a time becomes one transaction, so that they share the
// wait for the disk. Any thread.
#pragma once

#include <atomic>
#include <condition_variable>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>

#include "engine/queue/database.h"

namespace heddle::engine {

inline constexpr int kQueueSchema = 4;

class Store {
 public:
  // Makes the file where there is none, and upgrades one of an older schema, whose jobs stay.
  // Throws Error for one that is damaged, is no queue, is of a newer schema, or is used by another
  // process; nothing is changed in it then.
  explicit Store(const std::filesystem::path& file);

  // What `body` writes is on the disk when this comes back, all of it or, where anything throws,
  // nothing. `body` gets the database, and calls nothing of this object.
  template <class F>
  auto write(F&& body) -> decltype(body(std::declval<Database&>())) {
    using Result = decltype(body(std::declval<Database&>()));
    Turn turn(*this);
    if constexpr (std::is_void_v<Result>) {
      turn.take([&](Database& database) { body(database); });
      turn.commit();
    } else {
      std::optional<Result> result;
      turn.take([&](Database& database) { result.emplace(body(database)); });
      turn.commit();
      return *std::move(result);
    }
  }

  // May see what is about to be written.
  template <class F>
  auto read(F&& body) -> decltype(body(std::declval<Database&>())) {
    const std::lock_guard lock(mutex_);
    return body(database_);
  }

  // Between two transactions: for what must not see half of one.
  template <class F>
  auto between_writes(F&& body) -> decltype(body(std::declval<Database&>())) {
    std::unique_lock lock(mutex_);
    ++quiet_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return batch_ == nullptr; });
    const Quiet quiet(*this);
    return body(database_);
  }

  // For a moment in which nobody waits for the disk: empties a journal that has grown long. Else
  // that is done when it is very long, by whoever commits then.
  void tidy();

  std::uint64_t commits() const;  // transactions so far
  int journal_pages() const;      // that are not in the file itself yet

 private:
  // Of one transaction; whoever has a part in it waits for it.
  struct Batch {
    int parts = 0;
    bool is_over = false;
    std::exception_ptr failure;
  };

  // A write of one thread.
  class Turn {
   public:
    explicit Turn(Store& store);
    ~Turn();
    Turn(const Turn&) = delete;
    void take(const std::function<void(Database&)>& body);
    void commit();

   private:
    Store& store_;
    std::shared_ptr<Batch> batch_;
    bool has_arrived_ = false;
  };

  // With mutex_ held.
  struct Quiet {
    explicit Quiet(Store& of) : store(of) {}
    ~Quiet() {
      --store.quiet_;
      store.changed_.notify_all();
    }
    Quiet(const Quiet&) = delete;
    Store& store;
  };

  void finish(const std::shared_ptr<Batch>& batch);

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Database database_;              // mutex_
  std::shared_ptr<Batch> batch_;   // mutex_: of the transaction that is open; or nullptr
  std::atomic<int> arriving_ = 0;  // threads that are about to take a part in it; falls with mutex_
  bool is_committing_ = false;     // mutex_
  int quiet_ = 0;                  // mutex_: who wants no transaction to begin
  std::uint64_t commits_ = 0;      // mutex_
};

}  // namespace heddle::engine
