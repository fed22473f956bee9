#include "attribution/split/books.h"

#include <gtest/gtest.h>

#include "attribution/split/owner_key.h"

namespace gpuassay::books {
namespace {

ProcessOwner User(const std::string& name) {
  ProcessOwner owner;
  owner.user = name;
  return owner;
}

Account& Open(DeviceBooks& books, const std::string& user, std::uint64_t cycle) {
  return books.AccountOf(OwnerKey(User(user)), User(user), cycle, 2);
}

TEST(Total, IsMissingUntilSomethingWasAdded) {
  Total total;
  total.Miss(Missing::kNotSeparable);
  EXPECT_EQ(total.Get(), Reading(Missing::kNotSeparable));
  total.Add(0);
  EXPECT_EQ(total.Get(), Reading(0.0));
  total.Miss(Missing::kTimedOut);
  total.Add(2.5);
  EXPECT_EQ(total.Get(), Reading(2.5));
}

TEST(DeviceBooks, AnOwnerThatLeftFirstMakesRoomAndKeepsItsSumInOther) {
  DeviceBooks books;
  Account& alice = Open(books, "alice", 1);
  alice.totals[kEnergy].Add(10);
  alice.last_present = SteadyTime(std::chrono::seconds(1));
  Account& bob = Open(books, "bob", 9);
  bob.last_present = SteadyTime(std::chrono::seconds(9));
  Open(books, "carol", 10);
  EXPECT_EQ(books.accounts().size(), 2u);
  EXPECT_EQ(books.accounts().count(OwnerKey(User("alice"))), 0u);
  EXPECT_EQ(books.other().totals[kEnergy].Get(), Reading(10.0));
}

TEST(DeviceBooks, WhoeverDoesNotFitIsCountedUnderOther) {
  DeviceBooks books;
  Open(books, "alice", 5);
  Open(books, "bob", 5);
  Account& carol = Open(books, "carol", 5);
  EXPECT_EQ(&carol, &books.other());
  EXPECT_EQ(carol.kind, OwnerKind::kOther);
}

TEST(DeviceBooks, ForgetsIntoOther) {
  DeviceBooks books;
  Account& alice = Open(books, "alice", 1);
  alice.totals[kBusy].Add(3);
  alice.held.Add(7);
  alice.last_present = SteadyTime(std::chrono::seconds(10));
  books.Forget(SteadyTime(std::chrono::seconds(10)));
  EXPECT_FALSE(books.has_other());
  books.Forget(SteadyTime(std::chrono::seconds(11)));
  EXPECT_TRUE(books.accounts().empty());
  EXPECT_EQ(books.other().totals[kBusy].Get(), Reading(3.0));
  EXPECT_EQ(books.other().held.Get(), Reading(7.0));
}

}  // namespace
}  // namespace gpuassay::books
