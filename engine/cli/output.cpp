#include "engine/cli/output.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "engine/base/text.h"

namespace heddle::cli {

void Output::write(std::string_view given) {
  const std::string text = engine::printable_lines(given);
  engine::MutexLock lock(mutex_);
  if (closed_) return;
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (written && std::fflush(stdout) == 0) return;
  if (errno != EPIPE) failure_ = errno;
  closed_ = true;
}

int Output::failure() const {
  engine::MutexLock lock(mutex_);
  return failure_;
}

std::string format_seconds(double seconds) {
  char text[64];
  const int decimals = seconds < 1 ? 3 : seconds < 100 ? 2 : 0;
  std::snprintf(text, sizeof text, "%.*f s", decimals, seconds);
  return text;
}

void Table::row(std::vector<std::string> cells) {
  for (std::string& cell : cells) cell = engine::printable(cell);
  rows_.push_back(std::move(cells));
}

void to_stderr(std::string_view text) {
  const std::string line = engine::cat(engine::printable_lines(text), "\n");
  std::fwrite(line.data(), 1, line.size(), stderr);
}

std::string Table::text() const {
  std::vector<std::size_t> widths;
  for (const auto& row : rows_) {
    if (widths.size() < row.size()) widths.resize(row.size());
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows_) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += row[i];
      if (i + 1 < row.size()) line.append(widths[i] - row[i].size() + 2, ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace heddle::cli
