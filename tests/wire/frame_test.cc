// Messages: whole for any cut of the stream, refused if damaged or of another version, and read
// with defaults if old.

#include "wire/frame.h"

#include <gmock/gmock.h>
#include <sys/socket.h>

#include <random>
#include <stdexcept>
#include <thread>

#include "base/fd.h"
#include "wire/job.h"

namespace assay::wire {
namespace {

using ::testing::HasSubstr;

Bytes as_bytes(const flatbuffers::FlatBufferBuilder& builder) {
  const auto bytes = bytes_of(builder);
  return {bytes.begin(), bytes.end()};
}

Bytes batch(std::uint32_t version = kMessageVersion) {
  flatbuffers::FlatBufferBuilder builder;
  JobT job;
  job.test_case.id = 0xFEDCBA9876543210;
  job.test_case.text = "paddle.abs(Tensor([2], \"float32\"))";
  const std::vector<flatbuffers::Offset<Job>> jobs{pack(builder, job)};
  CaseSettingsT settings;
  settings.seed = 7;
  settings.backward = false;
  LaneSpecT lane;
  lane.reference_functions = true;
  const auto packed_settings = CaseSettings::Pack(builder, &settings);
  const auto packed_lane = LaneSpec::Pack(builder, &lane);
  builder.Finish(CreateBatch(builder, version, packed_settings, packed_lane, false,
                             builder.CreateVector(jobs)));
  return as_bytes(builder);
}

FdPair sockets() {
  auto pair = make_socket_pair();
  if (!pair) throw std::runtime_error(pair.error().message);
  return std::move(*pair);
}

// The bytes that send_frame puts on the stream.
Bytes framed(const std::vector<Bytes>& messages) {
  Bytes stream;
  for (const Bytes& message : messages) {
    const auto size = static_cast<std::uint32_t>(message.size());
    for (int i = 0; i < 4; ++i) stream.push_back(static_cast<std::uint8_t>(size >> (8 * i)));
    stream.insert(stream.end(), message.begin(), message.end());
  }
  return stream;
}

void send_raw(int socket, std::span<const std::uint8_t> bytes) {
  ASSERT_TRUE(write_all(socket, std::as_bytes(bytes)));
}

TEST(Frame, GoesThroughASocket) {
  const FdPair pair = sockets();
  const Bytes message = batch();
  ASSERT_TRUE(send_frame(pair.first.get(), message));
  ASSERT_TRUE(send_frame(pair.first.get(), {}));
  EXPECT_EQ(**receive_frame(pair.second.get()), message);
  EXPECT_EQ(**receive_frame(pair.second.get()), Bytes());
  ::shutdown(pair.first.get(), SHUT_RDWR);
  EXPECT_EQ(*receive_frame(pair.second.get()), std::nullopt);
}

// On a little-endian machine, for which framed() spells out the bytes.
TEST(Frame, OddPiecesMakeTheSameMessages) {
  std::mt19937 random(3);
  std::vector<Bytes> messages;
  for (const std::size_t size : {0, 1, 3, 4, 5, 1000, 70'000, 0, 200'000, 17}) {
    Bytes message(size);
    for (std::uint8_t& byte : message) byte = static_cast<std::uint8_t>(random());
    messages.push_back(std::move(message));
  }
  const Bytes stream = framed(messages);
  const FdPair pair = sockets();
  FrameReader reader;
  std::vector<Bytes> received;
  for (std::size_t at = 0; at < stream.size();) {
    const std::size_t piece = std::min<std::size_t>(1 + random() % 9'000, stream.size() - at);
    send_raw(pair.first.get(), std::span(stream).subspan(at, piece));
    at += piece;
    ASSERT_TRUE(*reader.feed(pair.second.get()));
    while (true) {
      auto next = reader.next();
      ASSERT_TRUE(next.has_value());
      if (!*next) break;
      received.push_back(std::move(**next));
    }
  }
  EXPECT_EQ(received, messages);
}

TEST(Frame, BlockingReceiveWaitsForTheRest) {
  const FdPair pair = sockets();
  const Bytes message = batch();
  const Bytes stream = framed({message});
  std::thread sender([&] {
    for (const std::uint8_t byte : stream) send_raw(pair.first.get(), std::span(&byte, 1));
  });
  EXPECT_EQ(**receive_frame(pair.second.get()), message);
  sender.join();
}

TEST(Frame, ACloseInTheMiddleIsAnErrorOrNoMessage) {
  const Bytes stream = framed({batch()});
  for (const std::size_t cut : {std::size_t{2}, std::size_t{4}, stream.size() - 1}) {
    FdPair pair = sockets();
    send_raw(pair.first.get(), std::span(stream).first(cut));
    pair.first.reset();
    EXPECT_FALSE(receive_frame(pair.second.get()).has_value()) << cut;

    FdPair other = sockets();
    send_raw(other.first.get(), std::span(stream).first(cut));
    other.first.reset();
    FrameReader reader;
    EXPECT_FALSE(*reader.feed(other.second.get()));
    EXPECT_EQ(*reader.next(), std::nullopt);
  }
}

// The last message of a peer that has closed is still there.
TEST(Frame, MessagesBeforeACloseAreKept) {
  FdPair pair = sockets();
  ASSERT_TRUE(send_frame(pair.first.get(), batch()));
  pair.first.reset();
  FrameReader reader;
  EXPECT_FALSE(*reader.feed(pair.second.get()));
  EXPECT_EQ(**reader.next(), batch());
}

TEST(Frame, ATooLongMessageIsRefusedBeforeMemoryIsTaken) {
  const Bytes header{0xff, 0xff, 0xff, 0xff};
  const FdPair pair = sockets();
  send_raw(pair.first.get(), header);
  EXPECT_FALSE(receive_frame(pair.second.get()).has_value());
  const FdPair other = sockets();
  send_raw(other.first.get(), header);
  FrameReader reader;
  EXPECT_TRUE(*reader.feed(other.second.get()));
  EXPECT_FALSE(reader.next().has_value());
}

TEST(Messages, AreReadBack) {
  const Bytes bytes = batch();
  const auto opened = open<Batch>(bytes);
  ASSERT_TRUE(opened.has_value());
  EXPECT_EQ((*opened)->jobs()->Get(0)->test_case()->id(), 0xFEDCBA9876543210);
  EXPECT_EQ((*opened)->settings()->seed(), 7U);
  EXPECT_FALSE((*opened)->settings()->backward());
  EXPECT_TRUE((*opened)->lane()->reference_functions());
}

TEST(Messages, AnotherVersionIsRefused) {
  const auto opened = open<Batch>(batch(kMessageVersion + 1));
  ASSERT_FALSE(opened.has_value());
  EXPECT_THAT(opened.error().message, HasSubstr("version 4, this assay needs 3"));
}

// A message may be cut or altered anywhere: it is refused, or it is safe to read (run under asan).
TEST(Messages, DamageIsRefusedOrHarmless) {
  const Bytes good = batch();
  EXPECT_FALSE(open<Batch>({}).has_value());
  for (std::size_t size = 0; size < good.size(); ++size) {
    const Bytes cut(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size));
    const auto opened = open<Batch>(cut);
    const bool has_jobs = opened && (*opened)->jobs() != nullptr;
    EXPECT_LE(has_jobs ? (*opened)->jobs()->size() : 0U, 1U);
  }
  std::mt19937 random(5);
  int refused = 0;
  for (int round = 0; round < 20'000; ++round) {
    Bytes bad = good;
    bad[random() % bad.size()] = static_cast<std::uint8_t>(random());
    const auto opened = open<Batch>(bad);
    if (!opened) {
      ++refused;
      continue;
    }
    std::size_t read = 0;
    if ((*opened)->jobs() != nullptr) {
      for (const Job* job : *(*opened)->jobs()) read += job->test_case()->text()->str().size();
    }
    EXPECT_LE(read, good.size());
  }
  EXPECT_GT(refused, 1000);
}

// A record of this version by an assay with fewer fields. The tables are written by hand with their
// first field or two, as flatc laid them out before the other fields were appended.
TEST(Messages, WhatAnEarlierBuildLeftOutReadsAsDefaults) {
  flatbuffers::FlatBufferBuilder builder;
  const auto name = builder.CreateString("paddle");
  const auto lane_start = builder.StartTable();
  builder.AddOffset(LaneRecord::VT_NAME, name);
  const flatbuffers::Offset<LaneRecord> lane(builder.EndTable(lane_start));
  const auto comparison_start = builder.StartTable();
  const flatbuffers::Offset<Comparison> comparison(builder.EndTable(comparison_start));
  const auto lanes = builder.CreateVector(&lane, 1);
  const auto pair = CreatePair(builder, 0, 0, builder.CreateVector(&comparison, 1));
  const auto trial = CreateTrial(builder, 0, lanes, builder.CreateVector(&pair, 1));
  const auto trials = builder.CreateVector(&trial, 1);
  const auto start = builder.StartTable();
  builder.AddElement<std::uint32_t>(Record::VT_VERSION, kVersion, 1);
  builder.AddElement<std::uint64_t>(Record::VT_ID, 9, 0);
  builder.AddOffset(Record::VT_TRIALS, trials);
  builder.Finish(flatbuffers::Offset<Record>(builder.EndTable(start)));

  const Bytes bytes = as_bytes(builder);
  const auto opened = open<Record>(bytes);
  ASSERT_TRUE(opened.has_value()) << opened.error().message;
  EXPECT_EQ((*opened)->id(), 9U);
  const Trial& read = *(*opened)->trials()->Get(0);
  EXPECT_EQ(read.lanes()->Get(0)->name()->str(), "paddle");
  EXPECT_EQ(read.lanes()->Get(0)->status(), Status::ok);
  EXPECT_EQ(read.lanes()->Get(0)->grown_kb(), 0);
  EXPECT_EQ(read.lanes()->Get(0)->inputs(), nullptr);
  EXPECT_FALSE(read.pairs()->Get(0)->gradients_compared());
  EXPECT_TRUE(read.pairs()->Get(0)->outputs()->Get(0)->scalar_equal());
  EXPECT_EQ(read.pairs()->Get(0)->outputs()->Get(0)->measurement(), nullptr);
}

// Messages of version 1 left out their version, because it was the default.
TEST(Messages, ARecordOfVersion1IsRefused) {
  flatbuffers::FlatBufferBuilder builder;
  const auto start = builder.StartTable();
  builder.AddElement<std::uint64_t>(Record::VT_ID, 9, 0);
  builder.Finish(flatbuffers::Offset<Record>(builder.EndTable(start)));
  const Bytes bytes = as_bytes(builder);
  const auto opened = open<Record>(bytes);
  ASSERT_FALSE(opened.has_value());
  EXPECT_THAT(opened.error().message, HasSubstr("version 1, this assay needs 2"));
}

// A record of a result with a great many parts, on its way to the supervisor.
TEST(Message, MayHoldAMessageOfAMillionTables) {
  flatbuffers::FlatBufferBuilder inner;
  std::vector<flatbuffers::Offset<Comparison>> parts(1'200'000);
  for (auto& part : parts) part = CreateComparison(inner);
  const auto pair = CreatePair(inner, 0, 1, inner.CreateVector(parts));
  const auto pairs = inner.CreateVector(&pair, 1);
  const auto trial = CreateTrial(inner, 0, 0, pairs);
  inner.Finish(CreateRecord(inner, kVersion, 7, 1, false, 0, inner.CreateVector(&trial, 1)));
  const Bytes record = as_bytes(inner);
  flatbuffers::FlatBufferBuilder builder;
  builder.ForceVectorAlignment(record.size(), 1, 16);
  const auto data = CreateRecordBytes(builder, builder.CreateVector(record));
  const auto results = CreateResults(builder, builder.CreateVector(&data, 1));
  builder.Finish(CreateFromSlot(builder, kMessageVersion, FromSlotBody::Results, results.Union()));
  const auto opened = open<FromSlot>(bytes_of(builder));
  ASSERT_TRUE(opened.has_value());
  const auto* bytes = (*opened)->body_as_Results()->records()->Get(0)->data();
  EXPECT_TRUE(open<Record>({bytes->data(), bytes->size()}).has_value());
}

}  // namespace
}  // namespace assay::wire
