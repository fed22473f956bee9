#include "attribution/kubernetes/api_client.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <utility>

#include "base/check.h"
#include "base/duration.h"

namespace gpuassay {
namespace {

constexpr std::size_t kErrorBodyBytesMax = std::size_t{64} << 10;
constexpr int kPollMs = 200;  // how late a time-out may be seen; events wake the poll at once

struct EasyDeleter {
  void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
};
using Easy = std::unique_ptr<CURL, EasyDeleter>;
struct ListDeleter {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using HeaderList = std::unique_ptr<curl_slist, ListDeleter>;

// curl does not change the memory, its type just has no const.
curl_blob Blob(const std::string& text) {
  return {const_cast<char*>(text.data()), text.size(), CURL_BLOB_COPY};
}

long Milliseconds(Duration duration) {
  return static_cast<long>(
      std::max<Duration::rep>(1, std::chrono::ceil<std::chrono::milliseconds>(duration).count()));
}

void SetAccess(CURL* easy, const ApiAccess& access) {
  // Only the cluster's authority counts when there is one: without these lines the system's would
  // be trusted too.
  if (!access.ca_pem.empty()) {
    curl_blob ca = Blob(access.ca_pem);
    curl_easy_setopt(easy, CURLOPT_CAPATH, nullptr);
    curl_easy_setopt(easy, CURLOPT_CAINFO, nullptr);
    curl_easy_setopt(easy, CURLOPT_CAINFO_BLOB, &ca);
  }
  if (access.insecure) {
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 0L);
  }
  if (!access.certificate_pem.empty()) {
    curl_blob certificate = Blob(access.certificate_pem);
    curl_blob key = Blob(access.key_pem);
    curl_easy_setopt(easy, CURLOPT_SSLCERT_BLOB, &certificate);
    curl_easy_setopt(easy, CURLOPT_SSLCERTTYPE, "PEM");
    curl_easy_setopt(easy, CURLOPT_SSLKEY_BLOB, &key);
    curl_easy_setopt(easy, CURLOPT_SSLKEYTYPE, "PEM");
  }
}

void SetCommon(CURL* easy) {
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_PROXY, "");
  curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, long{CURL_HTTP_VERSION_1_1});
  curl_easy_setopt(easy, CURLOPT_SSLVERSION, long{CURL_SSLVERSION_TLSv1_2});
  curl_easy_setopt(easy, CURLOPT_USERAGENT, "gpuassay");
  // A server that is gone without a word is found out within a minute.
  curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
  curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, 30L);
  curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, 10L);
#if LIBCURL_VERSION_NUM >= 0x075700
  // Ending does not wait for a name server.
  curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
#endif
}

bool IsCertificateError(CURLcode code) {
  return code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_ISSUER_ERROR ||
         code == CURLE_SSL_CERTPROBLEM;
}

}  // namespace

struct ApiClient::Transfer {
  std::string url;
  Duration timeout{};
  Duration length_max{};
  std::size_t bytes_max = 0;                                       // of the answer, or of a line
  const std::function<bool(std::string_view)>* on_line = nullptr;  // null: a whole answer
  const std::function<void()>* on_open = nullptr;

  Easy easy;
  ApiResponse response;
  SteadyTime started;
  std::string line;    // the unfinished last line of a stream
  bool begun = false;  // something of the answer has come
  bool too_long = false;
  bool enough = false;  // on_line has returned false
  bool overdue = false;
  std::array<char, CURL_ERROR_SIZE> error{};

  bool Take(std::string_view data);
  bool TakeLines(std::string_view data);
  static std::size_t OnData(char* data, std::size_t size, std::size_t count, void* self) {
    const std::size_t bytes = size * count;
    return static_cast<Transfer*>(self)->Take({data, bytes}) ? bytes : CURL_WRITEFUNC_ERROR;
  }
  static std::size_t OnHeader(char* data, std::size_t size, std::size_t count, void* self) {
    static_cast<Transfer*>(self)->TakeHeader({data, size * count});
    return size * count;
  }
  void TakeHeader(std::string_view line);
};

void ApiClient::Transfer::TakeHeader(std::string_view header) {
  begun = true;
  if (on_open == nullptr || !*on_open || header != "\r\n") return;
  long status = 0;
  curl_easy_getinfo(easy.get(), CURLINFO_RESPONSE_CODE, &status);
  if (status != 200) return;
  (*on_open)();
  on_open = nullptr;
}

// False ends the transfer.
bool ApiClient::Transfer::Take(std::string_view data) {
  long status = 0;
  curl_easy_getinfo(easy.get(), CURLINFO_RESPONSE_CODE, &status);
  if (on_line != nullptr && status == 200) return TakeLines(data);
  const std::size_t bound = status == 200 ? bytes_max : kErrorBodyBytesMax;
  if (response.body.size() + data.size() > bound) {
    if (status != 200) return true;  // the beginning of an error says enough
    too_long = true;
    return false;
  }
  response.body += data;
  return true;
}

bool ApiClient::Transfer::TakeLines(std::string_view data) {
  while (!data.empty()) {
    const std::size_t end = data.find('\n');
    const std::string_view part = data.substr(0, end);
    if (line.size() + part.size() > bytes_max) {
      too_long = true;
      return false;
    }
    line += part;
    if (end == std::string_view::npos) return true;
    data.remove_prefix(end + 1);
    if (!line.empty() && !(*on_line)(line)) {
      enough = true;
      return false;
    }
    line.clear();
  }
  return true;
}

ApiClient::ApiClient(const Clock& clock) : clock_(clock) {
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
  multi_ = curl_multi_init();
  Check(multi_ != nullptr, "curl has a handle for us");
}

ApiClient::~ApiClient() { curl_multi_cleanup(multi_); }

Result<ApiResponse> ApiClient::Get(const ApiAccess& access, const std::string& path,
                                   Duration timeout, std::size_t bytes_max) {
  Transfer transfer;
  transfer.url = access.server + path;
  transfer.timeout = timeout;
  transfer.length_max = timeout;
  transfer.bytes_max = bytes_max;
  return Perform(access, transfer);
}

Result<ApiResponse> ApiClient::Stream(const ApiAccess& access, const std::string& path,
                                      Duration timeout, Duration length_max, std::size_t line_max,
                                      const std::function<bool(std::string_view)>& on_line,
                                      const std::function<void()>& on_open) {
  Transfer transfer;
  transfer.url = access.server + path;
  transfer.timeout = timeout;
  transfer.length_max = length_max;
  transfer.bytes_max = line_max;
  transfer.on_line = &on_line;
  transfer.on_open = &on_open;
  return Perform(access, transfer);
}

void ApiClient::Interrupt() {
  interrupt_ = true;
  curl_multi_wakeup(multi_);
}

void ApiClient::Stop() {
  stop_ = true;
  curl_multi_wakeup(multi_);
}

// True when the transfer is done, false when it was ended from outside or is overdue.
bool ApiClient::Wait(Transfer& transfer) {
  while (true) {
    int running = 0;
    curl_multi_perform(multi_, &running);
    if (running == 0) return true;
    if (stop_ || (transfer.on_line != nullptr && interrupt_)) {
      transfer.response.interrupted = true;
      return false;
    }
    const Duration passed = clock_.Steady() - transfer.started;
    if ((!transfer.begun && passed > transfer.timeout) || passed > transfer.length_max) {
      transfer.overdue = true;
      return false;
    }
    curl_multi_poll(multi_, nullptr, 0, kPollMs, nullptr);
  }
}

Result<ApiResponse> ApiClient::Perform(const ApiAccess& access, Transfer& transfer) {
  transfer.easy.reset(curl_easy_init());
  CURL* easy = transfer.easy.get();
  Check(easy != nullptr, "curl has a handle for us");
  SetCommon(easy);
  SetAccess(easy, access);
  HeaderList headers(curl_slist_append(nullptr, "Accept: application/json"));
  if (!access.token.empty()) {
    curl_slist_append(headers.get(), ("Authorization: Bearer " + access.token).c_str());
  }
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers.get());
  curl_easy_setopt(easy, CURLOPT_URL, transfer.url.c_str());
  curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, transfer.error.data());
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, &Transfer::OnData);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, &transfer);
  curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, &Transfer::OnHeader);
  curl_easy_setopt(easy, CURLOPT_HEADERDATA, &transfer);
  curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, Milliseconds(transfer.timeout));
  transfer.started = clock_.Steady();
  curl_multi_add_handle(multi_, easy);
  const bool done = Wait(transfer);
  CURLcode code = CURLE_OK;
  int left = 0;
  while (const CURLMsg* message = curl_multi_info_read(multi_, &left)) {
    if (message->msg == CURLMSG_DONE) code = message->data.result;
  }
  curl_multi_remove_handle(multi_, easy);
  if (transfer.on_line != nullptr) interrupt_ = false;

  ApiResponse& response = transfer.response;
  long status = 0;
  curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
  response.status = static_cast<int>(status);
  curl_off_t retry_after = 0;
  curl_easy_getinfo(easy, CURLINFO_RETRY_AFTER, &retry_after);
  if (retry_after > 0) response.retry_after = std::chrono::seconds(retry_after);
  response.half_line = !transfer.line.empty();
  response.interrupted = response.interrupted || transfer.enough;
  if (response.interrupted) return std::move(response);
  if (transfer.too_long) {
    return Fail(ErrorCode::kMalformed,
                fmt::format("{} has sent more than {} bytes in one {}", access.server,
                            transfer.bytes_max, transfer.on_line != nullptr ? "line" : "answer"));
  }
  if (transfer.overdue || code == CURLE_OPERATION_TIMEDOUT) {
    return Fail(
        ErrorCode::kTimeout,
        fmt::format("{} has not answered within {}", access.server,
                    FormatDuration(transfer.begun ? transfer.length_max : transfer.timeout)));
  }
  if (!done || code == CURLE_OK) return std::move(response);
  const char* text = transfer.error[0] != '\0' ? transfer.error.data() : curl_easy_strerror(code);
  if (IsCertificateError(code)) {
    return Fail(ErrorCode::kPermission,
                fmt::format("the certificate of {} is not trusted: {}", access.server, text));
  }
  return Fail(code == CURLE_UNSUPPORTED_PROTOCOL || code == CURLE_WEIRD_SERVER_REPLY
                  ? ErrorCode::kMalformed
                  : ErrorCode::kIo,
              fmt::format("{}: {}", access.server, text));
}

std::string PercentEncode(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '.' || c == '_' || c == '~';
    if (plain) {
      out += c;
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

}  // namespace gpuassay
