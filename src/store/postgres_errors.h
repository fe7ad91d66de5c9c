#pragma once

// What people are told when PostgreSQL refuses: one line, what to do about it, and no password.

#include <exception>
#include <string>
#include <string_view>

#include "base/result.h"

namespace assay::postgres {

inline constexpr std::string_view kDiskIsFull =
    "the database's disk is full: free some space there (nothing recorded is lost)";

// The first line of what was raised (libpq adds hints and the statement itself), and behind it what
// to do where that is known.
Error database_error(const std::exception& error);

// An error where libpq cannot read the address. What libpq says of it is left out where it may
// quote a password.
Status check_address(const std::string& address);

// The address as it may be shown.
std::string without_password(std::string_view address);

}  // namespace assay::postgres
