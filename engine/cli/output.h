// stdout, for what a command answers. Every text is flushed, so that a program that reads line by
// line sees it at once. A reader that went away (`heddle nodes | head -1`) is no fault of ours: the
// rest is dropped. Thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/base/guarded.h"

namespace heddle::cli {

class Output {
 public:
  // What would command a terminal is written out, which leaves JSON the JSON that it was. Never
  // throws, because observers call it on a run's threads: what goes wrong is kept.
  void write(std::string_view text);

  // errno of what stopped the output (a full disk), or 0.
  int failure() const;

 private:
  mutable engine::Mutex mutex_;
  int failure_ HEDDLE_GUARDED_BY(mutex_) = 0;
  bool closed_ HEDDLE_GUARDED_BY(mutex_) = false;
};

// A line, or several, on stderr, as it may be shown to people; the line end is added.
void to_stderr(std::string_view text);

// "3.42 s", "0.071 s": three digits that matter, and never more than milliseconds.
std::string format_seconds(double seconds);

// Rows as columns that line up, two spaces apart; the last one as long as it is. A line each.
class Table {
 public:
  void row(std::vector<std::string> cells);
  std::string text() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace heddle::cli
