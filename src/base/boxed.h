// An optional value that lives elsewhere: as large as a pointer while it is absent, copied and
// compared by value. For parts that are large, seldom there, and held by the thousand.
#pragma once

#include <memory>
#include <utility>

namespace gpuassay {

template <class T>
class Boxed {
 public:
  Boxed() = default;
  Boxed(T value) : value_(std::make_unique<T>(std::move(value))) {}  // NOLINT: implicit by design
  Boxed(const Boxed& other) : value_(other ? std::make_unique<T>(*other) : nullptr) {}
  Boxed(Boxed&&) noexcept = default;
  ~Boxed() = default;
  Boxed& operator=(const Boxed& other) { return *this = Boxed(other); }
  Boxed& operator=(Boxed&&) noexcept = default;
  Boxed& operator=(T value) { return *this = Boxed(std::move(value)); }

  explicit operator bool() const { return value_ != nullptr; }
  bool has_value() const { return value_ != nullptr; }
  T& operator*() { return *value_; }
  const T& operator*() const { return *value_; }
  T* operator->() { return value_.get(); }
  const T* operator->() const { return value_.get(); }
  T& emplace() { return *(value_ = std::make_unique<T>()); }
  void reset() { value_.reset(); }

  friend bool operator==(const Boxed& a, const Boxed& b) {
    return a.value_ && b.value_ ? *a == *b : !a.value_ && !b.value_;
  }

 private:
  std::unique_ptr<T> value_;
};

}  // namespace gpuassay
