// SQLite behind a small door: a file, statements, and errors that say what to do. One thread at a
// time; store.h gives it to several.
#pragma once

#include <concepts>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "engine/base/error.h"

struct sqlite3;
struct sqlite3_stmt;

namespace heddle::engine {

// A prepared statement: bind() in the order of its "?", then step() until there are no more rows.
class Statement {
 public:
  Statement(sqlite3* database, std::string_view sql, const std::filesystem::path& file);
  ~Statement();
  Statement(const Statement&) = delete;

  // Ready to be used anew; counters go on.
  Statement& reset();
  Statement& bind(std::int64_t value);
  Statement& bind(double value);
  Statement& bind(std::string_view text);
  Statement& bind(std::nullptr_t);
  template <std::integral T>
  Statement& bind(T value) {
    return bind(static_cast<std::int64_t>(value));
  }

  bool step();  // whether there is a row
  void run();   // to its end

  // Of the row, columns from 0.
  bool is_null(int column) const;
  std::int64_t integer(int column) const;
  double real(int column) const;
  std::string text(int column) const;

  std::uint64_t machine_steps() const;  // instructions that it has taken in all runs

 private:
  sqlite3* const database_;
  sqlite3_stmt* statement_ = nullptr;
  const std::filesystem::path& file_;
  int next_ = 1;
};

class Database {
 public:
  // Opens the file, or makes it with the permissions 0600. Throws Error(invalid_argument) for what
  // is no database, Error(io) for what cannot be opened, and Error(unsupported) where another
  // process has it open: what is there stays as it is.
  explicit Database(std::filesystem::path file);
  ~Database();
  Database(const Database&) = delete;

  const std::filesystem::path& file() const { return file_; }
  void run(std::string_view sql);
  // Prepared once for each text, which has to live as long as the database, as literals do. A
  // statement is used to its end, or reset, before another one writes.
  Statement& statement(std::string_view sql);
  std::int64_t ask(std::string_view sql);  // the first column of the first row, or 0
  std::uint64_t machine_steps() const;     // of all statements
  int changes() const;                     // rows that the last statement has written
  bool is_in_transaction() const;

  // Of a write-ahead journal: its pages that are not in the file yet, as of the last commit. SQLite
  // does not put them there by itself, as whoever commits would have to wait for that.
  int journal_pages() const { return journal_pages_; }
  // Puts them there. Where that fails, as on a full disk, they stay, and nothing is lost.
  void empty_journal();

 private:
  friend class Backup;
  const std::filesystem::path file_;
  sqlite3* database_ = nullptr;
  int journal_pages_ = 0;
  std::unordered_map<std::string_view, std::unique_ptr<Statement>> statements_;
};

// A copy of a database that is in use, made piece by piece: what is written between two pieces is
// in it, too. The target must not be there.
class Backup {
 public:
  Backup(Database& from, const std::filesystem::path& to);
  ~Backup();
  Backup(const Backup&) = delete;

  bool copy(int pages);  // false: all is there

 private:
  struct Handles;
  std::unique_ptr<Handles> handles_;
  const std::filesystem::path file_;
};

}  // namespace heddle::engine
