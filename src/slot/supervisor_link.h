#pragma once

// A slot's connection to the supervisor. Messages come in; records, signs of life and the reason to
// give up go out.

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "wire/frame.h"

namespace assay {

class SupervisorLink {
 public:
  explicit SupervisorLink(Fd supervisor) : supervisor_(std::move(supervisor)) {}
  SupervisorLink(const SupervisorLink&) = delete;
  SupervisorLink& operator=(const SupervisorLink&) = delete;

  // Blocks for the next message, as before any other call; nullopt: the supervisor has closed the
  // connection.
  Result<std::optional<wire::Bytes>> receive_first() const;
  // From now on a thread sends a sign of life once a second, also while a case keeps the main
  // thread busy.
  void start_pulse();

  // Blocks until something has come, at most `limit_ms` (-1: without limit). Returns whether
  // something has.
  Result<bool> wait(int limit_ms) const;
  // Reads what has come, for next(); false: the supervisor has closed the connection.
  Result<bool> read() { return reader_.feed(supervisor_.get()); }
  Result<std::optional<wire::Bytes>> next() { return reader_.next(); }

  // Keeps a finished wire::Record for send_records().
  void keep(wire::Bytes record) { records_.push_back(std::move(record)); }
  // Whether records were last sent so long ago that the kept ones should go now.
  bool records_are_due() const;
  Status send_records();
  // The last message: neither this slot nor another in its place can go on.
  void give_up(const std::string& why);

 private:
  Status send(const flatbuffers::FlatBufferBuilder& message);
  void send_pulse(const std::stop_token& stop);

  Fd supervisor_;
  wire::FrameReader reader_;
  std::vector<wire::Bytes> records_;
  std::int64_t last_sent_ns_ = 0;
  std::mutex sending_;  // two threads send
  std::jthread pulse_;  // last, so that it ends before the members that it uses
};

}  // namespace assay
