#pragma once

// Two machines for the tests of fleets: two network namespaces joined by a cable (needs root).

#include <gtest/gtest.h>
#include <unistd.h>

#include "chain/params/shell_words.h"
#include "cli_run.h"

namespace assay::chain {

// Runs a program to its end; true when it ends well.
inline bool run_words(const std::string& line, const std::vector<std::string>& environment = {}) {
  SpawnOptions options;
  options.argv = *params::split_words(line);
  options.environment = environment;
  auto process = Process::spawn(options);
  if (!process) return false;
  const auto status = process->wait();
  return status && status->ok();
}

inline bool has_program(const std::string& name) {
  for (const char* folder : {"/usr/sbin/", "/usr/bin/", "/sbin/", "/bin/"}) {
    if (::access((folder + name).c_str(), X_OK) == 0) return true;
  }
  return false;
}

// Namespaces of our own names, so that nobody else's are touched; gone at the end.
class TwoMachines : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root to make network namespaces";
    if (!has_program("ip")) GTEST_SKIP() << "needs the program ip (Debian: iproute2)";
    tear_down();
    const bool made = run_words("ip netns add " + a_) && run_words("ip netns add " + b_) &&
                      run_words("ip link add " + va_ + " type veth peer name " + vb_) &&
                      run_words("ip link set " + va_ + " netns " + a_) &&
                      run_words("ip link set " + vb_ + " netns " + b_) &&
                      run_words("ip -n " + a_ + " addr add 10.78.0.1/24 dev " + va_) &&
                      run_words("ip -n " + b_ + " addr add 10.78.0.2/24 dev " + vb_) &&
                      run_words("ip -n " + a_ + " link set lo up") &&
                      run_words("ip -n " + b_ + " link set lo up") &&
                      run_words("ip -n " + a_ + " link set " + va_ + " up") &&
                      run_words("ip -n " + b_ + " link set " + vb_ + " up");
    if (!made) {
      tear_down();
      GTEST_SKIP() << "this machine lets nobody make network namespaces";
    }
  }
  void TearDown() override { tear_down(); }

  void tear_down() const {
    if (::geteuid() != 0) return;
    for (const std::string& name : {a_, b_}) {
      if (std::filesystem::exists("/run/netns/" + name)) run_words("ip netns del " + name);
    }
  }

  bool cut_the_cable() const { return run_words("ip -n " + b_ + " link set " + vb_ + " down"); }

  std::vector<std::string> reach() const {
    return {"--remote", "ip netns exec {host}", "--alias", "10.78.0.1=" + a_,
            "--alias",  "10.78.0.2=" + b_};
  }

  // `fleet` on both machines, with more words before the command.
  CliResult fleet(const std::filesystem::path& folder, const std::vector<std::string>& more,
                  const std::vector<std::string>& command) const {
    std::vector<std::string> words{"fleet", "--hosts", "10.78.0.1,10.78.0.2"};
    for (const std::string& word : reach()) words.push_back(word);
    words.insert(words.end(), more.begin(), more.end());
    words.emplace_back("--");
    words.insert(words.end(), command.begin(), command.end());
    return run_cli(folder, words);
  }

  const std::string id_ = std::to_string(::getpid() % 10000);
  const std::string a_ = "chA" + id_;
  const std::string b_ = "chB" + id_;
  const std::string va_ = "cvA" + id_;
  const std::string vb_ = "cvB" + id_;
};

}  // namespace assay::chain
