#include "sources/replay/recording.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "model/random_snapshot.h"
#include "model/snapshot_codec.h"
#include "sources/replay/recording_reader.h"

namespace gpuassay {
namespace {

using std::chrono::seconds;

constexpr WallTime kStart = WallTime(seconds(1767225600));

class RecordingTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    path_ = testing::TempDir() + "recording-" + std::to_string(getpid()) + "-" + test->name();
    std::filesystem::remove(path_);
  }
  void TearDown() override { std::filesystem::remove(path_); }

  std::string FileBytes() const {
    std::ifstream in(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void SetFileBytes(std::string_view bytes) const {
    std::ofstream(path_, std::ios::binary) << bytes;
  }
  std::unique_ptr<RecordingWriter> Create(bool neutral = false) const {
    auto writer = RecordingWriter::Create(path_, {.neutral = neutral});
    EXPECT_TRUE(writer) << (writer ? "" : writer.error().what);
    return std::move(*writer);
  }
  Result<std::unique_ptr<Source>> Open(ReplayPace pace = ReplayPace::kAsFastAsRead) const {
    return OpenReplay(path_, pace, clock_);
  }

  std::string path_;
  VirtualClock clock_{kStart};
};

// Frame n: one second after the one before, one GPU at n watts, one Xid event.
Snapshot Frame(int n) {
  Snapshot snapshot;
  snapshot.time = kStart + seconds(n);
  snapshot.steady = SteadyTime(seconds(1000 + n));
  snapshot.sources.push_back({"nvml", snapshot.time, "", Missing::kNeverSampled, {}});
  Gpu& gpu = snapshot.gpus.emplace_back();
  gpu.identity.uuid = "GPU-1";
  gpu.readings.power_watts = static_cast<double>(n);
  snapshot.events.push_back({snapshot.time, EventKind::kXid, "GPU-1", 10u + std::uint64_t(n), {}});
  return snapshot;
}

double PowerOf(const Snapshot& snapshot) { return *snapshot.gpus.at(0).readings.power_watts; }

TEST_F(RecordingTest, ReplaysEveryFrameAsItWasReadAndThenIsAtItsEnd) {
  auto writer = Create();
  for (int n = 1; n <= 3; ++n) ASSERT_TRUE(writer->Write(Frame(n)));
  EXPECT_EQ(writer->frames(), 3u);
  ASSERT_TRUE(writer->Close());
  EXPECT_EQ(writer->file_bytes(), FileBytes().size());

  auto source = Open();
  ASSERT_TRUE(source) << source.error().what;
  EXPECT_EQ((*source)->name(), "replay");
  for (int n = 1; n <= 3; ++n) {
    EXPECT_FALSE((*source)->AtEnd());
    const Snapshot snapshot = (*source)->Read();
    EXPECT_EQ(snapshot.time, kStart + seconds(n));
    EXPECT_EQ(PowerOf(snapshot), n);
    ASSERT_EQ(snapshot.events.size(), 1u);
    ASSERT_EQ(snapshot.sources.size(), 2u);
    EXPECT_EQ(snapshot.sources[0].name, "nvml");
    EXPECT_EQ(snapshot.sources[1].name, "replay");
    EXPECT_EQ(snapshot.sources[1].error, "");
    EXPECT_EQ(snapshot.sources[1].readings.reads_total, Reading(n));
  }
  EXPECT_TRUE((*source)->AtEnd());
  const Snapshot again = (*source)->Read();
  EXPECT_EQ(PowerOf(again), 3);
  EXPECT_TRUE(again.events.empty());
}

TEST_F(RecordingTest, RandomSnapshotsComeBackByteForByte) {
  RandomSnapshots random(5);
  std::vector<std::string> frames;
  auto writer = Create();
  for (int i = 0; i < 50; ++i) {
    const Snapshot snapshot = random.Next();
    EncodeSnapshot(snapshot, frames.emplace_back());
    ASSERT_TRUE(writer->Write(snapshot));
  }
  ASSERT_TRUE(writer->Close());
  std::ifstream in(path_, std::ios::binary);
  auto reader = RecordingReader::Open([&in](std::span<char> buffer) -> Result<std::size_t> {
    in.read(buffer.data(), static_cast<std::streamsize>(buffer.size()));
    return static_cast<std::size_t>(in.gcount());
  });
  ASSERT_TRUE(reader);
  for (const std::string& frame : frames) {
    auto snapshot = (*reader)->Next();
    ASSERT_TRUE(snapshot && *snapshot);
    std::string bytes;
    EncodeSnapshot(**snapshot, bytes);
    EXPECT_EQ(bytes, frame);
  }
  const auto end = (*reader)->Next();
  ASSERT_TRUE(end);
  EXPECT_FALSE(*end);
}

TEST_F(RecordingTest, KeepsTheRecordedPaceAndLosesNoEventOfASkippedFrame) {
  auto writer = Create();
  for (int n = 1; n <= 4; ++n) ASSERT_TRUE(writer->Write(Frame(n)));
  ASSERT_TRUE(writer->Close());
  clock_.AdvanceTo(seconds(500));
  auto source = Open(ReplayPace::kRecorded);
  ASSERT_TRUE(source) << source.error().what;
  EXPECT_EQ(PowerOf((*source)->Read()), 1);

  clock_.Advance(std::chrono::milliseconds(999));
  const Snapshot between = (*source)->Read();
  EXPECT_EQ(PowerOf(between), 1);
  EXPECT_TRUE(between.events.empty());

  clock_.Advance(std::chrono::milliseconds(1001));  // two frames are due: 2 and 3
  const Snapshot skipped = (*source)->Read();
  EXPECT_EQ(PowerOf(skipped), 3);
  ASSERT_EQ(skipped.events.size(), 2u);
  EXPECT_EQ(skipped.events[0].data, 12u);
  EXPECT_EQ(skipped.events[1].data, 13u);
  EXPECT_FALSE((*source)->AtEnd());

  clock_.Advance(seconds(1));
  EXPECT_EQ(PowerOf((*source)->Read()), 4);
  EXPECT_TRUE((*source)->AtEnd());
}

TEST_F(RecordingTest, AtTheRecordedPaceItAllHappensNow) {
  auto writer = Create();
  Snapshot first = Frame(1);
  first.sources[0].last_success = first.time - seconds(3);
  ASSERT_TRUE(writer->Write(first));
  ASSERT_TRUE(writer->Write(Frame(2)));
  ASSERT_TRUE(writer->Close());
  clock_.AdvanceTo(std::chrono::hours(1000));
  auto source = Open(ReplayPace::kRecorded);
  ASSERT_TRUE(source) << source.error().what;
  const Snapshot now = (*source)->Read();
  EXPECT_EQ(now.time, clock_.Wall());
  EXPECT_EQ(now.steady, clock_.Steady());
  EXPECT_EQ(now.events.at(0).time, clock_.Wall());
  EXPECT_EQ(now.sources[0].last_success, clock_.Wall() - seconds(3));
  clock_.Advance(seconds(5));  // read late: the frame is four seconds old, and says so
  const Snapshot late = (*source)->Read();
  EXPECT_EQ(late.time, clock_.Wall() - seconds(4));
  EXPECT_EQ(late.steady, clock_.Steady() - seconds(4));
}

TEST_F(RecordingTest, TimesThatCannotBeMovedStay) {
  auto writer = Create();
  Snapshot snapshot = Frame(1);
  snapshot.time = WallTime(Duration::min());
  snapshot.steady = SteadyTime(Duration::max());
  ASSERT_TRUE(writer->Write(snapshot));
  snapshot.time = WallTime(Duration::max());
  snapshot.steady = SteadyTime(Duration::min());
  ASSERT_TRUE(writer->Write(snapshot));
  ASSERT_TRUE(writer->Close());
  auto source = Open(ReplayPace::kRecorded);
  ASSERT_TRUE(source) << source.error().what;
  EXPECT_EQ((*source)->Read().time, WallTime(Duration::max()));
  EXPECT_TRUE((*source)->AtEnd());
}

TEST_F(RecordingTest, ATornEndIsToldInTheLastSnapshotOnly) {
  auto writer = Create();
  for (int n = 1; n <= 3; ++n) ASSERT_TRUE(writer->Write(Frame(n)));
  const std::size_t size = writer->file_bytes();
  ASSERT_TRUE(writer->Close());
  SetFileBytes(FileBytes().substr(0, size));  // as if killed now: no end mark
  auto source = Open();
  ASSERT_TRUE(source) << source.error().what;
  Snapshot snapshot;
  int frames = 0;
  while (!(*source)->AtEnd()) {
    snapshot = (*source)->Read();
    ++frames;
    EXPECT_EQ(snapshot.sources[1].error.empty(), !(*source)->AtEnd());
  }
  EXPECT_EQ(frames, 3);
  EXPECT_EQ(snapshot.sources[1].error,
            path_ + ": byte " + std::to_string(size) +
                ": ends without its end mark (cut off while recording); 3 frames could be read");
  EXPECT_EQ(snapshot.sources[1].readings.failures_total, Reading(1.0));
}

// Whatever is cut off, the frames before the cut come back, in order, and nothing else does.
TEST_F(RecordingTest, EveryTruncationGivesAPrefixOfTheFrames) {
  {
    auto writer = Create();
    for (int n = 1; n <= 5; ++n) ASSERT_TRUE(writer->Write(Frame(n)));
    ASSERT_TRUE(writer->Close());
  }
  const std::string bytes = FileBytes();
  int frames_before = 0;
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    SetFileBytes(std::string_view(bytes).substr(0, size));
    auto source = Open();
    int frames = 0;
    if (source) {
      while (!(*source)->AtEnd()) ASSERT_EQ(PowerOf((*source)->Read()), ++frames);
    } else {
      ASSERT_EQ(source.error().code, ErrorCode::kMalformed);
      ASSERT_NE(source.error().what.find("byte "), std::string::npos) << source.error().what;
    }
    ASSERT_GE(frames, frames_before) << size;
    frames_before = frames;
  }
  EXPECT_EQ(frames_before, 5);
}

TEST_F(RecordingTest, ADamagedByteIsNeverReadAsAFrame) {
  {
    auto writer = Create();
    for (int n = 1; n <= 3; ++n) ASSERT_TRUE(writer->Write(Frame(n)));
    ASSERT_TRUE(writer->Close());
  }
  const std::string bytes = FileBytes();
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    SetFileBytes(damaged);
    auto source = Open();
    if (!source) continue;
    int frames = 0;
    while (!(*source)->AtEnd()) ASSERT_EQ(PowerOf((*source)->Read()), ++frames) << at;
  }
}

TEST_F(RecordingTest, AKilledProgramLosesNoFrameItHasWritten) {
  const pid_t child = fork();
  if (child == 0) {
    auto writer = RecordingWriter::Create(path_, {});
    for (int n = 1; n <= 100; ++n) static_cast<void>((*writer)->Write(Frame(n)));
    raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  auto source = Open();
  ASSERT_TRUE(source) << source.error().what;
  int frames = 0;
  while (!(*source)->AtEnd()) ASSERT_EQ(PowerOf((*source)->Read()), ++frames);
  EXPECT_EQ(frames, 100);
}

TEST_F(RecordingTest, AFileThatIsNoRecordingIsRefusedWithItsByte) {
  SetFileBytes("GPUMON 1.0\nsomething else\n");
  const auto source = Open();
  ASSERT_FALSE(source);
  EXPECT_EQ(source.error().code, ErrorCode::kMalformed);
  EXPECT_EQ(source.error().what,
            path_ +
                ": byte 0: not a recording made by `gpuassay record` (it would begin with "
                "GPUASSAY)");
}

TEST_F(RecordingTest, AnotherVersionIsRefused) {
  ASSERT_TRUE(Create()->Close());
  std::string bytes = FileBytes();
  bytes[8] = 2;
  SetFileBytes(bytes);
  const auto source = Open();
  ASSERT_FALSE(source);
  EXPECT_EQ(source.error().what,
            path_ + ": byte 8: recording version 2, this program reads version 1");
}

TEST_F(RecordingTest, ARecordingWithoutFramesIsRefused) {
  ASSERT_TRUE(Create()->Close());
  auto source = Open();
  ASSERT_FALSE(source);
  EXPECT_EQ(source.error().what, path_ + ": the recording holds no frames");
  SetFileBytes("");
  source = Open();
  ASSERT_FALSE(source);
  EXPECT_EQ(source.error().what, path_ + ": byte 0: the file is empty");
}

TEST_F(RecordingTest, AMissingFileIsNotFound) {
  const auto source = Open();
  ASSERT_FALSE(source);
  EXPECT_EQ(source.error().code, ErrorCode::kNotFound);
}

TEST_F(RecordingTest, AnExistingFileIsNeverOverwrittenUnlessItIsEmpty) {
  SetFileBytes("precious");
  const auto refused = RecordingWriter::Create(path_, {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kIo);
  EXPECT_EQ(refused.error().what, path_ + ": the file exists and is not empty; name a new one");
  EXPECT_EQ(FileBytes(), "precious");
  SetFileBytes("");
  EXPECT_TRUE(RecordingWriter::Create(path_, {}));
}

TEST_F(RecordingTest, AFolderThatIsNotThereIsAnError) {
  const auto writer = RecordingWriter::Create(path_ + "/no/file", {});
  ASSERT_FALSE(writer);
  EXPECT_EQ(writer.error().code, ErrorCode::kIo);
}

TEST_F(RecordingTest, WritingBehindTheEndIsAnError) {
  auto writer = Create();
  ASSERT_TRUE(writer->Close());
  EXPECT_FALSE(writer->Write(Frame(1)));
  EXPECT_TRUE(writer->Close());
}

// What one frame of 8 GPUs, 64 processes and 144 links costs on disk when nothing changes.
TEST_F(RecordingTest, FramesThatRepeatAreSmall) {
  RandomSnapshots random(9);
  Snapshot snapshot;
  while (snapshot.gpus.size() < 3) snapshot = random.Next();
  auto writer = Create();
  ASSERT_TRUE(writer->Write(snapshot));
  const std::uint64_t first = writer->file_bytes();
  for (int n = 0; n < 10; ++n) ASSERT_TRUE(writer->Write(snapshot));
  EXPECT_LT(writer->file_bytes() - first, first);
}

}  // namespace
}  // namespace gpuassay
