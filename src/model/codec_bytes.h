// The bytes under the record format: numbers, texts, lists and readings, little endian. Private to
// snapshot_codec.cc; docs/record-format.md describes them.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "model/catalogue.h"
#include "model/snapshot_codec.h"

namespace gpuassay::codec {

constexpr std::size_t BitmapBytes(std::size_t fields) { return (fields + 7) / 8; }

template <std::unsigned_integral T>
void Store(T value, char* at) {
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    at[i] = static_cast<char>(static_cast<unsigned char>(value >> (8 * i)));
  }
}

class Writer {
 public:
  explicit Writer(std::string& out) : out_(out) {}

  template <std::unsigned_integral T>
  void Put(T value) {
    char bytes[sizeof(T)];
    Store(value, bytes);
    out_.append(bytes, sizeof(T));
  }
  void PutTime(Duration since_origin) {
    Put(std::bit_cast<std::uint64_t>(std::int64_t{since_origin.count()}));
  }
  void PutText(std::string_view text, std::size_t bytes_max = kTextBytesMax) {
    text = text.substr(0, bytes_max);
    Put(static_cast<std::uint16_t>(text.size()));
    out_.append(text);
  }
  void PutDouble(double value) { Put(std::bit_cast<std::uint64_t>(value)); }
  void PutOptional(std::optional<std::uint32_t> value) {
    Put(static_cast<std::uint8_t>(value.has_value()));
    if (value) Put(*value);
  }
  // Returns how many elements follow.
  std::size_t PutCount(std::size_t size, std::size_t max) {
    const std::size_t count = std::min(size, max);
    Put(static_cast<std::uint32_t>(count));
    return count;
  }

  // One bit per field (known or not), then 8 bytes for a known field and its reason for another.
  template <class Readings>
  void PutReadings(const Readings& readings) {
    const auto members = Members(&readings);
    const std::size_t start = out_.size();
    out_.resize(start + BitmapBytes(members.size()) + members.size() * sizeof(std::uint64_t));
    char* const bitmap = out_.data() + start;
    char* at = bitmap + BitmapBytes(members.size());
    for (std::size_t i = 0; i < members.size(); ++i) {
      const Reading& reading = readings.*members[i];
      if (reading) {
        bitmap[i / 8] = static_cast<char>(bitmap[i / 8] | (1 << (i % 8)));
        Store(std::bit_cast<std::uint64_t>(*reading), at);
        at += sizeof(std::uint64_t);
      } else {
        *at++ = static_cast<char>(reading.missing());
      }
    }
    out_.resize(static_cast<std::size_t>(at - out_.data()));
  }

 private:
  std::string& out_;
};

// Reads until the first thing that is wrong; after that every read returns an empty value and
// `error` tells the first place.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  bool failed() const { return !error_.empty(); }
  const std::string& error() const { return error_; }
  std::size_t position() const { return position_; }
  std::size_t left() const { return bytes_.size() - position_; }

  void FailAt(std::size_t position, std::string_view what) {
    if (error_.empty()) error_ = fmt::format("byte {}: {}", position, what);
  }

  template <std::unsigned_integral T>
  T Get(const char* what) {
    const char* const at = Take(sizeof(T), what);
    if (at == nullptr) return 0;
    T value = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i) {
      value = static_cast<T>(value | static_cast<T>(T{static_cast<unsigned char>(at[i])} << 8 * i));
    }
    return value;
  }
  Duration GetTime(const char* what) {
    return Duration(std::bit_cast<std::int64_t>(Get<std::uint64_t>(what)));
  }
  std::string GetText(const char* what, std::size_t bytes_max = kTextBytesMax) {
    const std::size_t start = position_;
    const std::size_t size = Get<std::uint16_t>(what);
    if (size > bytes_max) {
      FailAt(start, fmt::format("{}: {} bytes, at most {} are allowed", what, size, bytes_max));
      return {};
    }
    const char* const at = Take(size, what);
    return at == nullptr ? std::string() : std::string(at, size);
  }
  bool GetFlag(const char* what) {
    return GetAtMost(1, what) == 1;  // 0 after a failure
  }
  std::uint8_t GetAtMost(std::uint8_t max, const char* what) {
    const std::size_t start = position_;
    const auto value = Get<std::uint8_t>(what);
    if (value <= max) return value;
    FailAt(start, fmt::format("{} {}, at most {} is known", what, value, max));
    return 0;
  }
  double GetDouble(const char* what) {
    const std::size_t start = position_;
    const auto value = std::bit_cast<double>(Get<std::uint64_t>(what));
    if (std::isfinite(value)) return value;
    FailAt(start, fmt::format("{} is not a finite number", what));
    return 0;
  }
  std::optional<std::uint32_t> GetOptional(const char* what) {
    if (!GetFlag(what)) return std::nullopt;
    return Get<std::uint32_t>(what);
  }
  std::size_t GetCount(std::size_t max, std::size_t bytes_each_min, const char* what) {
    const std::size_t start = position_;
    const std::size_t count = Get<std::uint32_t>(what);
    if (count > max) {
      FailAt(start, fmt::format("{} {}, at most {} are allowed", what, count, max));
    } else if (count * bytes_each_min > left()) {
      FailAt(start, fmt::format("{} {}, but only {} bytes are left", what, count, left()));
    }
    return failed() ? 0 : count;
  }
  Missing GetMissing(const char* what) {
    const auto reason = Get<std::uint8_t>(what);
    return reason < kMissingCount ? static_cast<Missing>(reason) : Missing::kDriverError;
  }

  // `fields`: how many the writer had.
  template <class Readings>
  void GetReadings(std::size_t fields, const char* what, Readings& readings) {
    const char* const bitmap = Take(BitmapBytes(fields), what);
    if (bitmap == nullptr) return;
    const auto members = Members(&readings);
    for (std::size_t i = 0; i < fields && !failed(); ++i) {
      const Reading reading =
          ((bitmap[i / 8] >> (i % 8)) & 1) != 0 ? GetValue(what) : Reading(GetMissing(what));
      if (i < members.size()) readings.*members[i] = reading;
    }
  }

 private:
  const char* Take(std::size_t size, const char* what) {
    if (failed()) return nullptr;
    if (left() < size) {
      FailAt(bytes_.size(), fmt::format("ends within {}", what));
      return nullptr;
    }
    const char* const at = bytes_.data() + position_;
    position_ += size;
    return at;
  }
  Reading GetValue(const char* what) {
    const auto value = std::bit_cast<double>(Get<std::uint64_t>(what));
    return std::isfinite(value) ? Reading(value) : Reading(Missing::kImplausible);
  }

  std::string_view bytes_;
  std::size_t position_ = 0;
  std::string error_;
};

}  // namespace gpuassay::codec
