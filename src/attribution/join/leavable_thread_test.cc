#include "attribution/join/leavable_thread.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <thread>

namespace gpuassay {
namespace {

TEST(LeavableThread, EndsWhenItIsAskedTo) {
  auto ended = std::make_shared<std::atomic<bool>>(false);
  {
    LeavableThread thread([ended](const std::stop_token& stop) {
      while (!stop.stop_requested()) std::this_thread::yield();
      *ended = true;
    });
    EXPECT_FALSE(thread.ended());
  }
  EXPECT_TRUE(*ended);
}

TEST(LeavableThread, OneThatHangsIsLeftAlone) {
  auto let_go = std::make_shared<std::promise<void>>();
  auto done = std::make_shared<std::promise<void>>();
  {
    LeavableThread thread([let_go, done](const std::stop_token&) {
      let_go->get_future().wait();
      done->set_value();
    });
    thread.Leave();
    EXPECT_FALSE(thread.ended());
  }  // returns although the thread has not
  EXPECT_EQ(done->get_future().wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  let_go->set_value();
}

TEST(LeavableThread, TheDestructorWaitsOnlySoLong) {
  auto let_go = std::make_shared<std::promise<void>>();
  auto done = std::make_shared<std::promise<void>>();
  std::future<void> is_done = done->get_future();
  {
    const LeavableThread thread([let_go, done](const std::stop_token&) {
      let_go->get_future().wait();
      done->set_value();
    });
  }
  EXPECT_EQ(is_done.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  let_go->set_value();
  is_done.wait();
}

TEST(LeavableThread, SaysWhenItHasEnded) {
  LeavableThread thread([](const std::stop_token&) {});
  while (!thread.ended()) std::this_thread::yield();
  EXPECT_TRUE(thread.ended());
}

}  // namespace
}  // namespace gpuassay
