// How machines find together, and what they hear of each other.

#include "chain/fleet/rendezvous.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <thread>
#include <vector>

#include "base/fd.h"

namespace assay::chain::fleet {
namespace {

int free_port() {
  const Fd fd(::socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  socklen_t size = sizeof address;
  EXPECT_EQ(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), size), 0);
  EXPECT_EQ(::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  return ntohs(address.sin_port);
}

// The second machine is slow to look: "go" and the first one's end are there at once.
TEST(Rendezvous, AnEndThatComesWithTheStartIsHeard) {
  RendezvousOptions options;
  options.hosts = {"127.0.0.1", "127.0.0.1"};
  options.port = free_port();
  options.token = "word";
  auto first = Rendezvous::open(options);
  ASSERT_TRUE(first) << first.error().message;
  options.rank = 1;
  auto second = Rendezvous::open(options);
  ASSERT_TRUE(second) << second.error().message;
  const auto began = second->gather();  // says hello
  ASSERT_TRUE(began) << began.error().message;
  for (int tries = 0; tries < 100'000; ++tries) {
    const auto all = first->gather();
    ASSERT_TRUE(all) << all.error().message;
    if (*all) break;
  }
  first->announce({});
  const auto go = second->gather();
  ASSERT_TRUE(go && *go);
  EXPECT_TRUE(second->all_ended());
  EXPECT_EQ(second->verdict({}), "");
}

// Two that share a port of this machine; the second one's secret may be another.
struct Two {
  explicit Two(RendezvousOptions options, const std::string& second_token) {
    first = *Rendezvous::open(options);
    options.rank = 1;
    options.token = second_token;
    second = *Rendezvous::open(options);
  }
  // Whether both have started within some tries.
  bool meet() {
    for (int tries = 0; tries < 3000; ++tries) {
      const auto one = first->gather();
      const auto other = second->gather();
      if (!one || !other) return false;
      if (*one && *other) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }
  std::optional<Rendezvous> first;
  std::optional<Rendezvous> second;
};

RendezvousOptions two_here() {
  RendezvousOptions options;
  options.hosts = {"127.0.0.1", "127.0.0.1"};
  options.port = free_port();
  options.token = "word";
  return options;
}

TEST(Rendezvous, AnotherSecretIsRefused) { EXPECT_FALSE(Two(two_here(), "another").meet()); }

TEST(Rendezvous, ConnectionsThatSayNothingKeepNobodyOut) {
  const RendezvousOptions options = two_here();
  Two two(options, options.token);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(options.port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::vector<Fd> idle;
  for (int i = 0; i < 400; ++i) {
    idle.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
    (void)::connect(idle.back().get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
    if (i % 50 == 0) (void)two.first->gather();
  }
  EXPECT_TRUE(two.meet());
}

// Without a driver rank 0 leaves its secret in a file for our user alone, and takes it away.
TEST(Rendezvous, ASecretMayComeFromAFile) {
  RendezvousOptions options = two_here();
  options.token.clear();
  std::string folder = std::filesystem::temp_directory_path() / "assay-rendezvous-XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  options.token_file = std::filesystem::path(folder) / ".assay-fleet";
  std::ofstream(options.token_file) << "of an earlier run\n";
  Two two(options, "");
  struct stat facts {};
  ASSERT_EQ(::stat(options.token_file.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0600U);
  EXPECT_TRUE(two.meet());
  EXPECT_FALSE(std::filesystem::exists(options.token_file));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace assay::chain::fleet
