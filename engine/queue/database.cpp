#include "engine/queue/database.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include <cerrno>

#include "engine/base/descriptor.h"
#include "engine/base/text.h"

namespace heddle::engine {
namespace {

std::string advice_for(int code) {
  switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return " Another process uses it: stop that one, or name another file.";
    case SQLITE_FULL:
      return " The disk is full: free some space, then try again.";
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return " The file is damaged, or is no database. Move it away, or restore a backup; nothing "
             "was changed in it.";
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_CANTOPEN:
      return " Check that the file and its folder may be written by this user.";
    default:
      return "";
  }
}

Code code_for(int code) {
  switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return Code::unsupported;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return Code::invalid_argument;
    case SQLITE_NOMEM:
      return Code::out_of_memory;
    case SQLITE_ERROR:
    case SQLITE_MISUSE:
    case SQLITE_CONSTRAINT:
      return Code::internal;
    default:
      return Code::io;
  }
}

[[noreturn]] void fail(sqlite3* database, int code, const std::filesystem::path& file) {
  const char* text = database == nullptr ? sqlite3_errstr(code) : sqlite3_errmsg(database);
  throw Error(code_for(code), cat(file.string(), ": ", text, ".", advice_for(code)));
}

// Its journal and all that SQLite makes beside it have the permissions of the file.
void make_file(const std::filesystem::path& file) {
  const FileDescriptor made(::open(file.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, S_IRUSR | S_IWUSR));
  if (made.number() < 0) throw system_error(file.string(), errno);
}

}  // namespace

Statement::Statement(sqlite3* database, std::string_view sql, const std::filesystem::path& file)
    : database_(database), file_(file) {
  const int code = sqlite3_prepare_v3(database, sql.data(), static_cast<int>(sql.size()),
                                      SQLITE_PREPARE_PERSISTENT, &statement_, nullptr);
  if (code != SQLITE_OK) fail(database, code, file);
}

Statement::~Statement() { sqlite3_finalize(statement_); }

Statement& Statement::reset() {
  sqlite3_reset(statement_);
  sqlite3_clear_bindings(statement_);
  next_ = 1;
  return *this;
}

Statement& Statement::bind(std::int64_t value) {
  sqlite3_bind_int64(statement_, next_++, value);
  return *this;
}
Statement& Statement::bind(double value) {
  sqlite3_bind_double(statement_, next_++, value);
  return *this;
}
Statement& Statement::bind(std::string_view text) {
  const int code = sqlite3_bind_text64(statement_, next_++, text.data(), text.size(),
                                       SQLITE_TRANSIENT, SQLITE_UTF8);
  if (code != SQLITE_OK) fail(database_, code, file_);
  return *this;
}
Statement& Statement::bind(std::nullptr_t) {
  sqlite3_bind_null(statement_, next_++);
  return *this;
}

bool Statement::step() {
  const int code = sqlite3_step(statement_);
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) {
    sqlite3_reset(statement_);
    return false;
  }
  try {
    fail(database_, code, file_);
  } catch (...) {
    sqlite3_reset(statement_);
    throw;
  }
}

void Statement::run() {
  while (step()) {
  }
}

bool Statement::is_null(int column) const {
  return sqlite3_column_type(statement_, column) == SQLITE_NULL;
}
std::int64_t Statement::integer(int column) const {
  return sqlite3_column_int64(statement_, column);
}
double Statement::real(int column) const { return sqlite3_column_double(statement_, column); }
std::string Statement::text(int column) const {
  const unsigned char* text = sqlite3_column_text(statement_, column);
  if (text == nullptr) return "";
  return {reinterpret_cast<const char*>(text),
          static_cast<std::size_t>(sqlite3_column_bytes(statement_, column))};
}

std::uint64_t Statement::machine_steps() const {
  return static_cast<std::uint64_t>(sqlite3_stmt_status(statement_, SQLITE_STMTSTATUS_VM_STEP, 0));
}

Database::Database(std::filesystem::path file) : file_(std::move(file)) {
  make_file(file_);
  const int code = sqlite3_open_v2(
      file_.c_str(), &database_,
      SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE, nullptr);
  if (code == SQLITE_OK) {
    // In the place of the one that empties the journal.
    const auto note = [](void* pages, sqlite3*, const char*, int count) {
      *static_cast<int*>(pages) = count;
      return SQLITE_OK;
    };
    sqlite3_wal_hook(database_, note, &journal_pages_);
    return;
  }
  try {
    fail(database_, code, file_);
  } catch (...) {
    sqlite3_close(database_);
    throw;
  }
}

void Database::empty_journal() {
  if (sqlite3_wal_checkpoint_v2(database_, nullptr, SQLITE_CHECKPOINT_PASSIVE, nullptr, nullptr) ==
      SQLITE_OK)
    journal_pages_ = 0;
}

Database::~Database() {
  statements_.clear();
  sqlite3_close(database_);
}

void Database::run(std::string_view sql) {
  const std::string text(sql);
  const int code = sqlite3_exec(database_, text.c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) fail(database_, code, file_);
}

Statement& Database::statement(std::string_view sql) {
  auto& statement = statements_[sql];
  if (statement == nullptr) statement = std::make_unique<Statement>(database_, sql, file_);
  return statement->reset();
}

std::int64_t Database::ask(std::string_view sql) {
  Statement statement(database_, sql, file_);
  return statement.step() ? statement.integer(0) : 0;
}

std::uint64_t Database::machine_steps() const {
  std::uint64_t steps = 0;
  for (const auto& [sql, statement] : statements_) steps += statement->machine_steps();
  return steps;
}

int Database::changes() const { return sqlite3_changes(database_); }
bool Database::is_in_transaction() const { return sqlite3_get_autocommit(database_) == 0; }

struct Backup::Handles {
  sqlite3* target = nullptr;
  sqlite3_backup* backup = nullptr;
  ~Handles() {
    if (backup != nullptr) sqlite3_backup_finish(backup);
    sqlite3_close(target);
  }
};

Backup::Backup(Database& from, const std::filesystem::path& to)
    : handles_(std::make_unique<Handles>()), file_(to) {
  make_file(to);
  const int code = sqlite3_open_v2(to.c_str(), &handles_->target,
                                   SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nullptr);
  if (code != SQLITE_OK) fail(handles_->target, code, file_);
  handles_->backup = sqlite3_backup_init(handles_->target, "main", from.database_, "main");
  if (handles_->backup == nullptr) fail(handles_->target, sqlite3_errcode(handles_->target), file_);
}

Backup::~Backup() = default;

bool Backup::copy(int pages) {
  const int code = sqlite3_backup_step(handles_->backup, pages);
  if (code == SQLITE_OK) return true;
  if (code == SQLITE_DONE) return false;
  fail(nullptr, code, file_);
}

}  // namespace heddle::engine
