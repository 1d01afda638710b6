#include "engine/cli/http.h"

#include "engine/base/error.h"
#include "engine/base/text.h"

#ifdef HEDDLE_WITH_FETCH
#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>
#include <dlfcn.h>

#include <charconv>
#include <exception>
#include <memory>
#endif

namespace heddle::cli {

using engine::cat;
using engine::Code;
using engine::Error;

#ifdef HEDDLE_WITH_FETCH

namespace {

constexpr long kConnectSeconds = 30, kStalledSeconds = 60, kMostRedirections = 10;

// What is used of libcurl.
struct Curl {
  decltype(&::curl_easy_init) init = nullptr;
  decltype(&::curl_easy_setopt) set = nullptr;
  decltype(&::curl_easy_perform) perform = nullptr;
  decltype(&::curl_easy_getinfo) get_info = nullptr;
  decltype(&::curl_easy_cleanup) cleanup = nullptr;
  decltype(&::curl_easy_strerror) error_text = nullptr;
  decltype(&::curl_slist_append) append = nullptr;
  decltype(&::curl_slist_free_all) free_all = nullptr;
};

Curl open_library() {
  void* library = nullptr;
  for (const char* name : {"libcurl.so.4", "libcurl-gnutls.so.4"})
    if (library == nullptr) library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    throw Error(Code::unsupported,
                "nothing can be fetched: there is no libcurl.so.4. Install libcurl4, or put the "
                "files there by hand.");
  const auto find = [&](auto& function, const char* name) {
    function =
        reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
    if (function == nullptr)
      throw Error(Code::unsupported, cat("libcurl.so.4 has no function ", name));
  };
  Curl curl;
  find(curl.init, "curl_easy_init");
  find(curl.set, "curl_easy_setopt");
  find(curl.perform, "curl_easy_perform");
  find(curl.get_info, "curl_easy_getinfo");
  find(curl.cleanup, "curl_easy_cleanup");
  find(curl.error_text, "curl_easy_strerror");
  find(curl.append, "curl_slist_append");
  find(curl.free_all, "curl_slist_free_all");
  return curl;
}

const Curl& library() {
  static const Curl curl = open_library();
  return curl;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && static_cast<unsigned char>(text.back()) <= ' ') text.remove_suffix(1);
  return text;
}

std::uint64_t number_in(std::string_view text) {
  std::uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

class Transfer {
 public:
  Transfer(const HttpRequest& request, const std::function<void(const HttpAnswer&)>& begin,
           const std::function<void(std::string_view)>& bytes)
      : request_(request), begin_(begin), bytes_(bytes), handle_(library().init()) {
    if (handle_ == nullptr) throw std::bad_alloc();
  }
  ~Transfer() {
    library().free_all(headers_);
    library().cleanup(handle_);
  }
  Transfer(const Transfer&) = delete;

  HttpAnswer run() {
    const bool is_https = request_.url.starts_with("https://");
    set(CURLOPT_URL, request_.url.c_str());
    set(CURLOPT_PROTOCOLS_STR, "http,https");
    set(CURLOPT_REDIR_PROTOCOLS_STR, is_https ? "https" : "http,https");
    set(CURLOPT_FOLLOWLOCATION, 1L);
    set(CURLOPT_MAXREDIRS, kMostRedirections);
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
    set(CURLOPT_LOW_SPEED_LIMIT, 1L);
    set(CURLOPT_LOW_SPEED_TIME, kStalledSeconds);
    set(CURLOPT_USERAGENT, "heddle");
    if (request_.from > 0) {
      add_header(cat("Range: bytes=", request_.from, "-"));
      add_header(cat("If-Range: ", request_.validator));
    }
    if (!request_.token.empty()) add_header(cat("Authorization: Bearer ", request_.token));
    set(CURLOPT_HTTPHEADER, headers_);
    set(CURLOPT_HEADERFUNCTION, &Transfer::take_header);
    set(CURLOPT_HEADERDATA, this);
    set(CURLOPT_WRITEFUNCTION, &Transfer::take_bytes);
    set(CURLOPT_WRITEDATA, this);
    const CURLcode code = library().perform(handle_);
    if (failure_) std::rethrow_exception(failure_);
    if (code != CURLE_OK)
      throw Error(code == CURLE_UNSUPPORTED_PROTOCOL ? Code::invalid_argument : Code::io,
                  cat(request_.url, ": ", library().error_text(code)));
    library().get_info(handle_, CURLINFO_RESPONSE_CODE, &answer_.status);
    begin();  // of an empty file
    return answer_;
  }

 private:
  template <class Value>
  void set(CURLoption option, Value value) {
    library().set(handle_, option, value);
  }
  void add_header(const std::string& line) { headers_ = library().append(headers_, line.c_str()); }

  bool has_bytes() const { return answer_.status == 200 || answer_.status == 206; }

  void begin() {
    if (began_ || !has_bytes()) return;
    began_ = true;
    if (answer_.status == 206) {
      answer_.from = range_begin_;
      answer_.total = range_total_;
    } else {
      answer_.total = length_;
    }
    answer_.validator = !etag_.empty() && !etag_.starts_with("W/") ? etag_ : modified_;
    begin_(answer_);
  }

  // Those of the last answer count: each begins with its status.
  void header(std::string_view line) {
    if (line.starts_with("HTTP/")) {
      answer_ = {};
      length_ = range_begin_ = range_total_ = 0;
      etag_.clear();
      modified_.clear();
      const std::size_t space = line.find(' ');
      if (space != line.npos) answer_.status = long(number_in(line.substr(space + 1)));
      return;
    }
    const std::size_t colon = line.find(':');
    if (colon == line.npos) return;
    std::string name(line.substr(0, colon));
    for (char& c : name) c = c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c;
    const std::string_view value = trimmed(line.substr(colon + 1));
    if (name == "content-length") length_ = number_in(value);
    if (name == "etag") etag_ = value;
    if (name == "last-modified") modified_ = value;
    if (name != "content-range" || !value.starts_with("bytes ")) return;
    range_begin_ = number_in(value.substr(6));
    const std::size_t slash = value.find('/');
    if (slash != value.npos) range_total_ = number_in(value.substr(slash + 1));
  }

  // An exception must not pass through libcurl.
  template <class F>
  std::size_t guarded(std::size_t size, F&& body) {
    try {
      body();
      return size;
    } catch (...) {
      failure_ = std::current_exception();
      return size + 1;  // ends the transfer
    }
  }

  static std::size_t take_header(char* data, std::size_t size, std::size_t count, void* self) {
    auto& me = *static_cast<Transfer*>(self);
    return me.guarded(size * count, [&] { me.header({data, size * count}); });
  }
  static std::size_t take_bytes(char* data, std::size_t size, std::size_t count, void* self) {
    auto& me = *static_cast<Transfer*>(self);
    return me.guarded(size * count, [&] {
      me.begin();
      if (me.has_bytes()) me.bytes_({data, size * count});
    });
  }

  const HttpRequest& request_;
  const std::function<void(const HttpAnswer&)>& begin_;
  const std::function<void(std::string_view)>& bytes_;
  CURL* const handle_;
  curl_slist* headers_ = nullptr;
  HttpAnswer answer_;
  bool began_ = false;
  std::uint64_t length_ = 0, range_begin_ = 0, range_total_ = 0;
  std::string etag_, modified_;
  std::exception_ptr failure_;
};

class ApiTransfer {
 public:
  explicit ApiTransfer(const HttpCall& call) : call_(call), handle_(library().init()) {
    if (handle_ == nullptr) throw std::bad_alloc();
  }
  ~ApiTransfer() {
    library().free_all(headers_);
    library().cleanup(handle_);
  }
  ApiTransfer(const ApiTransfer&) = delete;

  HttpReply run() {
    set(CURLOPT_URL, call_.url.c_str());
    set(CURLOPT_PROTOCOLS_STR, "http,https");
    set(CURLOPT_CUSTOMREQUEST, call_.method.c_str());
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
    set(CURLOPT_USERAGENT, "heddle");
    if (!call_.body.empty()) {
      add_header(cat("Content-Type: ", call_.content_type));
      set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(call_.body.size()));
      set(CURLOPT_POSTFIELDS, call_.body.c_str());
    } else if (call_.method == "POST") {
      set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(0));
      set(CURLOPT_POSTFIELDS, "");
    }
    if (!call_.token.empty()) add_header(cat("Authorization: Bearer ", call_.token));
    set(CURLOPT_HTTPHEADER, headers_);
    set(CURLOPT_WRITEFUNCTION, &ApiTransfer::take);
    set(CURLOPT_WRITEDATA, this);
    const CURLcode code = library().perform(handle_);
    if (failure_) std::rethrow_exception(failure_);
    if (code != CURLE_OK && !is_enough_)
      throw Error(Code::io, cat(call_.url, ": ", library().error_text(code)));
    library().get_info(handle_, CURLINFO_RESPONSE_CODE, &reply_.status);
    return std::move(reply_);
  }

 private:
  template <class Value>
  void set(CURLoption option, Value value) {
    library().set(handle_, option, value);
  }
  void add_header(const std::string& line) { headers_ = library().append(headers_, line.c_str()); }

  // An exception must not pass through libcurl; fewer bytes than came end the transfer.
  static std::size_t take(char* data, std::size_t size, std::size_t count, void* self) {
    auto& me = *static_cast<ApiTransfer*>(self);
    try {
      long status = 0;
      library().get_info(me.handle_, CURLINFO_RESPONSE_CODE, &status);
      if (me.call_.bytes && status == 200)
        me.is_enough_ = !me.call_.bytes({data, size * count});
      else
        me.reply_.body.append(data, size * count);
      return me.is_enough_ ? 0 : size * count;
    } catch (...) {
      me.failure_ = std::current_exception();
      return 0;
    }
  }

  const HttpCall& call_;
  CURL* const handle_;
  curl_slist* headers_ = nullptr;
  HttpReply reply_;
  bool is_enough_ = false;
  std::exception_ptr failure_;
};

void require_http(const std::string& url) {
  if (!url.starts_with("http://") && !url.starts_with("https://"))
    throw Error(Code::invalid_argument, cat(engine::quote(url),
                                            " is no address that begins with https:// or "
                                            "http://."));
}

}  // namespace

bool can_fetch() { return true; }

HttpReply http_call(const HttpCall& call) {
  require_http(call.url);
  return ApiTransfer(call).run();
}

HttpAnswer http_get(const HttpRequest& request, const std::function<void(const HttpAnswer&)>& begin,
                    const std::function<void(std::string_view)>& bytes) {
  require_http(request.url);
  return Transfer(request, begin, bytes).run();
}

#else

namespace {

Error without_libcurl() {
  return {Code::unsupported,
          "heddle was built without libcurl. Install libcurl4-openssl-dev and libmd-dev, and build "
          "again."};
}

}  // namespace

bool can_fetch() { return false; }

HttpAnswer http_get(const HttpRequest&, const std::function<void(const HttpAnswer&)>&,
                    const std::function<void(std::string_view)>&) {
  throw without_libcurl();
}
HttpReply http_call(const HttpCall&) { throw without_libcurl(); }

#endif

}  // namespace heddle::cli
