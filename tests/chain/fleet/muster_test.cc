// How machines find together, and what they hear of each other.

#include "chain/fleet/muster.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

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
TEST(Muster, AnEndThatComesWithTheStartIsHeard) {
  MusterOptions options;
  options.hosts = {"127.0.0.1", "127.0.0.1"};
  options.port = free_port();
  options.token = "word";
  auto first = Muster::open(options);
  ASSERT_TRUE(first) << first.error().message;
  options.rank = 1;
  auto second = Muster::open(options);
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

}  // namespace
}  // namespace assay::chain::fleet
