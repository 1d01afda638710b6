#include "plugins/video/ffmpeg.h"

#include <cstdarg>
#include <cstdio>
#include <mutex>

namespace heddle::video {
namespace {

thread_local std::string last_complaint;

void keep_complaint(void*, int level, const char* format, va_list arguments) {
  if (level > AV_LOG_ERROR) return;
  char text[256];
  std::vsnprintf(text, sizeof text, format, arguments);
  last_complaint = text;
  while (!last_complaint.empty() && (last_complaint.back() == '\n' || last_complaint.back() == '.'))
    last_complaint.pop_back();
}

}  // namespace

void keep_complaints() {
  static std::once_flag once;
  std::call_once(once, [] { av_log_set_callback(&keep_complaint); });
}

std::string error_text(int code) {
  char text[AV_ERROR_MAX_STRING_SIZE] = "";
  av_strerror(code, text, sizeof text);
  std::string whole = text;
  if (!last_complaint.empty()) whole += " (" + last_complaint + ")";
  last_complaint.clear();
  return whole;
}

}  // namespace heddle::video
